#include "bench/pinned.h"

namespace paceline::bench {
namespace {

cpu_set_t others;  // cores that a pinned thread has left

void use(const cpu_set_t& cores) { ::sched_setaffinity(0, sizeof cores, &cores); }

}  // namespace

Pinned::Pinned(int core) {
  CPU_ZERO(&before_);
  CPU_ZERO(&others);
  ::sched_getaffinity(0, sizeof before_, &before_);
  if (core < 0 || CPU_COUNT(&before_) < 2) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  others = before_;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before_) || core-- != 0) continue;
    CPU_SET(cpu, &one);
    CPU_CLR(cpu, &others);
  }
  if (CPU_COUNT(&one) == 1) use(one);
}

Pinned::~Pinned() {
  CPU_ZERO(&others);
  if (CPU_COUNT(&before_) > 0) use(before_);
}

void Pinned::leave() {
  if (CPU_COUNT(&others) > 0) use(others);
}

}  // namespace paceline::bench
