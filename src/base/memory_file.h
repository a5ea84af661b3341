// A file in memory that other processes can reach by a path.
#pragma once

#include <string>

namespace paceline {

/// A file in memory that stands in no folder. The system removes it when the process ends, even if
/// the process is killed.
class MemoryFile {
 public:
  /// Throws kUnavailable.
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Returns a path by which any process of this user can open the file: "/proc/4711/fd/9".
  std::string path() const;
  /// Everything that was written to it.
  std::string text() const;

 private:
  const int file_;
};

}  // namespace paceline
