// A lock that keeps two runs from writing into one folder.
#pragma once

#include <string>

namespace paceline {

/// Held while it lives: the file FOLDER/lock, which names this process and its host. The system
/// releases it when the process ends, however that happens. A file system without locks (some
/// network file systems) keeps nobody apart.
class FolderLock {
 public:
  /// Throws kUsage, naming --out and the other run's pid and host, when that holds the lock.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const std::string path_;
  int file_ = -1;
};

/// True while a run holds the lock of the folder. A process of this host that has died holds none,
/// whatever it left there; of another host the file alone tells.
bool is_locked(const std::string& folder);

}  // namespace paceline
