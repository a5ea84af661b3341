// A bound: the time that a step would take if only its FLOPs, its memory traffic and its bytes on
// links took time, each at this machine's measured rate. The bound follows from the graph. It is a
// model: values that a cache keeps from one op to the next may be read faster.
#pragma once

#include "predict/roof.h"
#include "predict/step_cost.h"

namespace paceline {

/// The parts of a bound, in seconds.
struct Bound {
  double ops = 0, rules = 0, link = 0;
  double total() const { return ops + rules + link; }
};

/// Returns the bound of a step. An op takes the time of its FLOPs or of its bytes, whichever is
/// longer; the bytes count only if they exceed the cache. Rules take the time of their bytes, even
/// if a cache holds these. The times of ops, rules and the link are added, because on one host all
/// of them need the same cores.
Bound bound_of(const StepCost& work, const Roof& roof);

}  // namespace paceline
