// Offers the bytes of a fuzzer as a file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/targets.h"

namespace paceline::testing {

/// A file in memory that has a path.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (write(file_, bytes.data(), bytes.size()) != ssize_t(bytes.size())) __builtin_trap();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

}  // namespace paceline::testing
