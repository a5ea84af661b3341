// Finds the limit of a process or of its control groups that is behind an error.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/control_group.h"

namespace paceline {

/// "; ulimit -n allows this process 64 open files", when the error says that descriptors, threads
/// or memory ran out and a limit of this process, or of its control groups, is behind it; else
/// empty.
std::string limit_behind(const std::exception& error,
                         const ControlGroupLimits& groups = control_group_limits());

/// Throws kFailedPrecondition when the control groups allow fewer processes and threads than `what`
/// ("1 ps + 2 workers") takes at least.
void check_processes_allowed(const std::string& what, std::int64_t least,
                             const ControlGroupLimits& groups = control_group_limits());

/// Notices that the kernel has killed processes since memory ran out.
class MemoryKills {
 public:
  /// Returns why, for a process that was just seen to be killed: "; memory ran out: …"; empty when
  /// the kernel has killed nobody since the last call, or since this was made.
  std::string newly_killed();

 private:
  std::int64_t seen_ = control_group_limits().killed_for_memory;
};

}  // namespace paceline
