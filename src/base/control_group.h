// The limits of the control groups (cgroup v1 and v2) that this process is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline {

/// One limit: the smallest of the process's own group and of all groups above it.
struct GroupLimit {
  std::int64_t most = 0;
  std::string file;  // sets the limit: "/sys/fs/cgroup/job/memory.max"
  // How much of the limit all processes of the group use now; 0: unknown.
  std::int64_t used = 0;
};

struct ControlGroupLimits {
  std::optional<double> cores;          // seconds of processor time a second
  std::optional<GroupLimit> memory;     // bytes; `used` leaves out files that can be dropped
  std::optional<GroupLimit> processes;  // counts processes and threads
  /// The number of processes that the kernel has killed for lack of memory so far: in the groups
  /// with a memory limit, or, if no group has one, on the whole machine.
  std::int64_t killed_for_memory = 0;
};

/// Reads the limits anew. A limit that is not set, or cannot be read, is left out. `root` is put
/// before /proc and before the mounts' paths, so that tests can supply files of their own.
ControlGroupLimits control_group_limits(const std::string& root = "");

}  // namespace paceline
