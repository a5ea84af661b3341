// A library that is preloaded into a task (tests/held_saves.h). A thread that syncs a file with
// $PACELINE_HELD_FILE in its path prints so, and waits while the pipe $PACELINE_HELD_PIPE exists.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

std::string path_of(int file) {
  std::string path(4096, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  path.resize(length > 0 ? std::size_t(length) : 0);
  return path;
}

void hold(int file) {
  const char* const held = std::getenv("PACELINE_HELD_FILE");
  const char* const pipe = std::getenv("PACELINE_HELD_PIPE");
  const std::string path = path_of(file);
  if (held == nullptr || pipe == nullptr || access(pipe, F_OK) != 0) return;
  if (path.find(held) == std::string::npos) return;
  const std::string line = "the save is held at " + path + "\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
  // Waits for a writer; fails once the pipe has been removed.
  const int end = open(pipe, O_RDONLY | O_CLOEXEC);
  if (end >= 0) close(end);
}

}  // namespace

extern "C" int fsync(int file) {
  hold(file);
  return int(syscall(SYS_fsync, file));
}
