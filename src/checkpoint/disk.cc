#include "checkpoint/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void fail(ErrorCode code, const char* what, const std::string& path, int reason) {
  throw Error(code, fmt::format("cannot {} {}: {}", what, path, std::strerror(reason)));
}

}  // namespace

const Disk& Disk::machine() {
  static const Disk disk;
  return disk;
}

void Disk::make_folder(const std::string& path) const {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(ErrorCode::kNotFound, "make the folder", path, error.value());
}

int Disk::create(const std::string& path) const {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) fail(ErrorCode::kNotFound, "make", path, errno);
  return file;
}

void Disk::write_at(int file, const std::string& path, std::span<const std::byte> bytes,
                    std::uint64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file, bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(ErrorCode::kUnavailable, "write", path, count < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(std::size_t(count));
    offset += std::uint64_t(count);
  }
}

void Disk::sync(int file, const std::string& path) const {
  if (fsync(file) != 0) fail(ErrorCode::kUnavailable, "write", path, errno);
}

void Disk::rename(const std::string& from, const std::string& to) const {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail(ErrorCode::kUnavailable, "make", to, errno);
  }
}

void Disk::sync_folder(const std::string& path) const {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail(ErrorCode::kNotFound, "open the folder", path, errno);
  const int failed = fsync(folder) != 0 ? errno : 0;
  close(folder);
  // Some network file systems cannot sync a folder, which is no error.
  if (failed != 0 && failed != EINVAL) fail(ErrorCode::kUnavailable, "write", path, failed);
}

void Disk::remove(const std::string& path) const {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace paceline
