// A file in memory that other processes can reach by a path.
#pragma once

#include <string>

namespace paceline {

/// It is gone with the process that made it, however that ends: no folder keeps it.
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
