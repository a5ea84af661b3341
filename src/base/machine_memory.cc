#include "base/machine_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/control_group.h"
#include "base/grouped_digits.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::uint64_t page_bytes() { return std::uint64_t(sysconf(_SC_PAGESIZE)); }

std::uint64_t resident_bytes() {
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * page_bytes();
}

std::string megabytes(double bytes) { return grouped_digits(std::int64_t(bytes / 1e6)) + " MB"; }

std::uint64_t physical_memory() { return std::uint64_t(sysconf(_SC_PHYS_PAGES)) * page_bytes(); }

}  // namespace

std::uint64_t memory_of_machine() {
  const auto group = control_group_limits().memory;
  return group ? std::min(physical_memory(), std::uint64_t(group->most)) : physical_memory();
}

void check_fits_machine(std::string_view what, double bytes) {
  const double own = bytes + double(resident_bytes()), there = double(physical_memory());
  if (own > there) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} {}, this machine has {}", what, megabytes(own), megabytes(there)));
  }
  const auto group = control_group_limits().memory;
  if (!group) return;
  const double all = bytes + std::max(double(group->used), double(resident_bytes()));
  if (all <= double(group->most)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} {}, with what runs beside it {}; its control group allows {} ({})", what,
                  megabytes(own), megabytes(all), megabytes(double(group->most)), group->file));
}

}  // namespace paceline
