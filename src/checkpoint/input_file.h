// A file that is read at any place, and whose length is never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// A file open for reading, by any number of threads. It is not mapped, since a mapped file that
/// another process cuts short would end this process.
class InputFile {
 public:
  /// Throws, naming the path, kNotFound when it is missing or no file, and kUnavailable when the
  /// system cannot read it.
  explicit InputFile(std::string path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills `into`. Throws kDataLoss naming the path when the file ends before.
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

/// CRC-32C of the first `bytes` bytes.
std::uint32_t checksum_of(const InputFile& file, std::uint64_t bytes);
/// The whole file. Throws kDataLoss when it is larger than `most` bytes.
std::string read_text(const std::string& path, std::uint64_t most);

}  // namespace paceline
