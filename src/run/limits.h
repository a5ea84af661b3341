// Finds the limit of this process, or of its control groups, that caused an error.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "base/control_group.h"

namespace paceline {

/// Returns "; ulimit -n allows this process 64 open files" if the error says that descriptors,
/// threads, memory or the size of a file reached a limit of this process or of its control groups;
/// else empty.
std::string limit_behind(const std::exception& error,
                         const ControlGroupLimits& groups = control_group_limits());

/// Throws kFailedPrecondition if the control groups have no room for `least` further processes and
/// threads, the number that `what` ("1 ps + 2 workers") needs at least.
void check_processes_allowed(const std::string& what, std::int64_t least,
                             const ControlGroupLimits& groups = control_group_limits());

/// Notices that the kernel has killed processes because memory ran out.
class MemoryKills {
 public:
  /// Returns "; memory ran out: …", an addition to the message that a process was killed. Empty if
  /// the kernel has killed no process for memory since the last call, or, at the first call, since
  /// this object was made.
  std::string newly_killed();

 private:
  std::int64_t seen_ = control_group_limits().killed_for_memory;
};

}  // namespace paceline
