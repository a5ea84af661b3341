#include "base/pinned.h"

namespace paceline {
namespace {

void use(const cpu_set_t& cores) { ::sched_setaffinity(0, sizeof cores, &cores); }

}  // namespace

Pinned::Pinned(int core) {
  CPU_ZERO(&before_);
  CPU_ZERO(&others_);
  ::sched_getaffinity(0, sizeof before_, &before_);
  if (CPU_COUNT(&before_) < 2) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  others_ = before_;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before_) || core-- != 0) continue;
    CPU_SET(cpu, &one);
    CPU_CLR(cpu, &others_);
  }
  if (CPU_COUNT(&one) == 1) use(one);
}

Pinned::~Pinned() {
  if (CPU_COUNT(&before_) > 0) use(before_);
}

void Pinned::leave() const {
  if (CPU_COUNT(&others_) > 0) use(others_);
}

}  // namespace paceline
