// A file in memory that other processes can reach by a path.
#pragma once

#include <string>

namespace paceline {

/// A file in memory, which no folder names: it ends with the process, however that ends.
class MemoryFile {
 public:
  /// Throws kUnavailable.
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// A path by which every process of this user opens it, "/proc/4711/fd/9".
  std::string path() const;
  /// Everything that was written to it.
  std::string text() const;

 private:
  const int file_;
};

}  // namespace paceline
