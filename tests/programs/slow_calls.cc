// Preloaded into a task, this library makes reads or writes of files slow, as on a slow disk.
// PACELINE_SLOW is the call ("read" or "write"), and PACELINE_SLOW_US the microseconds of each.
// With PACELINE_SLOW_PATH, only files with this text in their path are slow; with
// PACELINE_SLOW_TASK, only the process with this text in its command line.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_meant() {
  char line[4096] = {};
  std::FILE* const file = std::fopen("/proc/self/cmdline", "r");
  if (file == nullptr) return false;
  const std::size_t bytes = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (line[i] == '\0') line[i] = ' ';
  }
  return std::strstr(line, text_of("PACELINE_SLOW_TASK").c_str()) != nullptr;
}

void take_time(const char* call) {
  static const bool meant = is_meant();
  static const std::string slow = text_of("PACELINE_SLOW");
  static const long microseconds = std::atol(text_of("PACELINE_SLOW_US").c_str());
  if (meant && slow == call) usleep(useconds_t(microseconds));
}

bool is_data(int fd) {
  static const std::string part = text_of("PACELINE_SLOW_PATH");
  char link[64], path[4096] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && std::strstr(path, part.c_str()) != nullptr;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* to, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, void*, size_t)>("read");
  if (is_data(fd)) take_time("read");
  return real(fd, to, bytes);
}

ssize_t readv(int fd, const struct iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const struct iovec*, int)>("readv");
  if (is_data(fd)) take_time("read");
  return real(fd, parts, count);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  if (is_data(fd)) take_time("read");
  return real(fd, to, bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  static const auto real = next<ssize_t (*)(int, void*, size_t, off64_t)>("pread64");
  if (is_data(fd)) take_time("read");
  return real(fd, to, bytes, at);
}

ssize_t write(int fd, const void* from, size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (is_data(fd)) take_time("write");
  return real(fd, from, bytes);
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (is_data(fd)) take_time("write");
  return real(fd, from, bytes, at);
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  if (is_data(fd)) take_time("write");
  return real(fd, from, bytes, at);
}
}
