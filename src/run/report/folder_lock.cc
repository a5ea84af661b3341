#include "run/report/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "run/report/circumstances.h"
#include "run/usage_errors.h"

namespace paceline {
namespace {

// Checks that the opened file is still at its path, since the previous run removes the file as it
// releases the lock.
bool is_still_at(const std::string& path, int file) {
  struct stat held = {}, there = {};
  return fstat(file, &held) == 0 && stat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

std::string holder_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "its pid is not known yet" : line;
}

// True if `holder`, "pid 12 on host a" as FolderLock writes it, names a process of this host that
// has ended.
bool has_died(const std::string& holder) {
  int pid = 0;
  const std::size_t host = holder.find(" on host ");
  if (host == std::string::npos || std::sscanf(holder.c_str(), "pid %d", &pid) != 1) return false;
  return holder.substr(host + 9) == host_name() && kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

bool is_locked(const std::string& folder) {
  const std::string path = folder + "/lock";
  return access(path.c_str(), F_OK) == 0 && !has_died(holder_of(path));
}

FolderLock::FolderLock(const std::string& folder) : path_(folder + "/lock") {
  do {
    if (file_ >= 0) close(file_);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) return;
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) continue;
    const bool held = errno == EWOULDBLOCK;
    close(file_);
    file_ = -1;
    if (!held) return;
    refuse_flag("--out", folder,
                fmt::format("another run writes there ({}): wait until it has ended, or name "
                            "another folder",
                            holder_of(path_)));
  } while (!is_still_at(path_, file_));
  const std::string holder = fmt::format("pid {} on host {}\n", getpid(), host_name());
  if (ftruncate(file_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = write(file_, holder.data(), holder.size());
  }
}

FolderLock::~FolderLock() {
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(file_);
}

}  // namespace paceline
