#include "predict/bound.h"

#include <algorithm>

namespace paceline {

Bound bound_of(const StepCost& work, const Roof& roof) {
  Bound bound;
  for (const Cost& cost : work.ops) {
    const double bytes = cost.bytes > double(roof.cache_bytes) ? cost.bytes : 0;
    bound.ops += std::max(cost.flops / roof.flops_per_s, bytes / roof.bytes_per_s);
  }
  bound.rules = work.rule_bytes / roof.rule_bytes_per_s;
  if (roof.link_bytes_per_s > 0) {
    bound.link = (work.link_bytes_in + work.link_bytes_out) / roof.link_bytes_per_s;
  }
  return bound;
}

}  // namespace paceline
