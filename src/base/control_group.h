// The limits of the control groups (cgroup v1 and v2) that this process is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline {

/// One limit: the smallest of the process's own group and of all groups above it.
struct GroupLimit {
  std::int64_t most = 0;
  std::string file;       // that sets it, such as "/sys/fs/cgroup/job/memory.max"
  std::int64_t used = 0;  // of it now, by all processes of that group; 0: it does not say
};

struct ControlGroupLimits {
  std::optional<double> cores;          // seconds of processor time a second
  std::optional<GroupLimit> memory;     // bytes; `used` leaves out files that can be dropped
  std::optional<GroupLimit> processes;  // and threads
  /// Processes that the kernel has killed so far since a group with a memory limit was full, or
  /// where no group has one, since the machine's memory was.
  std::int64_t killed_for_memory = 0;
};

/// Reads them anew. A limit that is not set, or cannot be read, is left out. `root` stands before
/// /proc and before the paths of its mounts: tests put files of their own there.
ControlGroupLimits control_group_limits(const std::string& root = "");

}  // namespace paceline
