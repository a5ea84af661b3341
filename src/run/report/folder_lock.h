// A lock that keeps two runs from writing into one folder.
#pragma once

#include <string>

namespace paceline {

/// The lock is held while the object lives: the file FOLDER/lock, which names this process and its
/// host. The system releases the lock when the process ends, even if it is killed. On a file system
/// without locks (some network file systems), two runs can lock one folder.
class FolderLock {
 public:
  /// Throws kUsage, naming --out and the other run's pid and host, if another run holds the lock.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const std::string path_;
  int file_ = -1;
};

/// True while a run holds the lock of the folder. On this host the process must still live,
/// whatever the file says. For a process of another host, the file alone decides.
bool is_locked(const std::string& folder);

}  // namespace paceline
