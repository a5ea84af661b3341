#include "base/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "paceline/error.h"

namespace paceline {

MemoryFile::MemoryFile() : file_(memfd_create("paceline", MFD_CLOEXEC)) {
  if (file_ >= 0) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("a file in memory cannot be made: {}",
                                                   std::generic_category().message(errno)));
}

MemoryFile::~MemoryFile() { close(file_); }

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

std::string MemoryFile::text() const {
  std::ifstream file(path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace paceline
