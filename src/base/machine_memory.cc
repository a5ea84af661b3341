#include "base/machine_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::uint64_t page_bytes() { return std::uint64_t(sysconf(_SC_PAGESIZE)); }

std::uint64_t limit_of_control_group() {
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t bytes = 0;
    if (std::ifstream(file) >> bytes) return bytes;
  }
  return UINT64_MAX;
}

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * page_bytes();
}

std::string megabytes(double bytes) { return grouped_digits(std::int64_t(bytes / 1e6)) + " MB"; }

}  // namespace

std::uint64_t memory_of_machine() {
  const std::uint64_t all = std::uint64_t(sysconf(_SC_PHYS_PAGES)) * page_bytes();
  return std::min(all, limit_of_control_group());
}

void check_fits_machine(std::string_view what, double bytes) {
  const double needed = bytes + double(resident_bytes()), there = double(memory_of_machine());
  if (needed <= there) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} {}, this machine has {}", what, megabytes(needed), megabytes(there)));
}

}  // namespace paceline
