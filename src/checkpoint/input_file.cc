#include "checkpoint/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // stays in the cache between two uses

// Distinguishes a missing file from one that the system cannot read now, because a permission, a
// descriptor or a working disk is missing.
[[noreturn]] void refuse(const std::string& path, int why) {
  const bool missing = why == ENOENT || why == ENOTDIR || why == ELOOP;
  throw Error(missing ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
              fmt::format("cannot read {}: {}", path, std::strerror(why)));
}

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // Opening a pipe that has no writer must not block.
  file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_) refuse(path_, errno);
  struct stat status {};
  if (fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kNotFound, fmt::format("cannot read {}: it is no file", path_));
  }
  size_ = std::uint64_t(status.st_size);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = pread(file_.get(), into.data(), into.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(path_, errno);
    if (count == 0) {
      throw Error(ErrorCode::kDataLoss, fmt::format("{} is truncated: it ends at byte {}, {} more "
                                                    "were to follow",
                                                    path_, offset, into.size()));
    }
    into = into.subspan(std::size_t(count));
    offset += std::uint64_t(count);
  }
}

std::uint32_t checksum_of(const InputFile& file, std::uint64_t bytes) {
  const Buffer piece(kReadBytes);
  std::uint32_t checksum = 0;
  for (std::uint64_t offset = 0; offset < bytes; offset += kReadBytes) {
    const auto read = piece.span().first(std::min<std::uint64_t>(kReadBytes, bytes - offset));
    file.read_at(offset, read);
    checksum = crc32c(read, checksum);
  }
  return checksum;
}

std::string read_text(const std::string& path, std::uint64_t most) {
  const InputFile file(path);
  if (file.size() > most) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("{} has {} bytes; at most {} are read", path, file.size(), most));
  }
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace paceline
