// The cores that a thread may run on.
#pragma once

#include <sched.h>

namespace paceline {

/// Returns the cores that the system lets the calling thread use.
inline cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

}  // namespace paceline
