#include "checkpoint/new_file.h"

#include <filesystem>

#include "checkpoint/input_file.h"

namespace paceline {

NewFile::NewFile(std::string path, const Disk& disk)
    : path_(std::move(path)),
      unfinished_(path_ + ".part"),
      disk_(disk),
      file_(disk.create(unfinished_)) {}

NewFile::~NewFile() {
  if (file_) disk_.remove(unfinished_);
}

void NewFile::write_at(std::span<const std::byte> bytes, std::uint64_t offset) {
  disk_.write_at(file_.get(), path_, bytes, offset);
}

std::uint32_t NewFile::checksum(std::uint64_t bytes) const {
  return checksum_of(InputFile(unfinished_), bytes);
}

void NewFile::commit() {
  disk_.sync(file_.get(), path_);
  disk_.rename(unfinished_, path_);
  file_ = FileDescriptor();
  const std::string folder = std::filesystem::path(path_).parent_path();
  disk_.sync_folder(folder.empty() ? "." : folder);
}

}  // namespace paceline
