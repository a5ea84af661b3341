// A file that can be read at any place. Its stated length is never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// A file that is open for reading, by any number of threads. It is not mapped into memory: if
/// another process shortened a mapped file, this process would be killed.
class InputFile {
 public:
  /// Throws, naming the path: kNotFound if it is missing or no file, kUnavailable if the system
  /// cannot read it.
  explicit InputFile(std::string path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills `into`. Throws kDataLoss naming the path if the file ends earlier.
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

/// CRC-32C of the first `bytes` bytes.
std::uint32_t checksum_of(const InputFile& file, std::uint64_t bytes);
/// Returns the whole file. Throws kDataLoss if it has more than `most` bytes.
std::string read_text(const std::string& path, std::uint64_t most);

}  // namespace paceline
