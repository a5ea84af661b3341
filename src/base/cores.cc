#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "base/control_group.h"

namespace paceline {
namespace {

struct FreeMask {
  void operator()(cpu_set_t* mask) const { CPU_FREE(mask); }
};

// The mask must have a bit for each core that the system may have. Tries masks of up to 2^16 bits.
int cores_in_mask() {
  for (int most = CPU_SETSIZE; most <= 1 << 16; most *= 2) {
    const std::unique_ptr<cpu_set_t, FreeMask> mask(CPU_ALLOC(std::size_t(most)));
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    if (mask && ::sched_getaffinity(::getpid(), bytes, mask.get()) == 0)
      return CPU_COUNT_S(bytes, mask.get());
  }
  return int(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cores(int in_mask, std::optional<double> quota) {
  const int by_quota = quota ? int(std::ceil(std::min(*quota, 1e6))) : in_mask;
  return std::max(1, std::min(in_mask, by_quota));
}

int usable_cores() { return usable_cores(cores_in_mask(), control_group_limits().cores); }

}  // namespace paceline
