// The time that a step would take if nothing but its FLOPs, its memory traffic and its bytes on
// links took time, each at the rate that was measured for this machine. All of it follows from the
// graph. It is a model: values that a cache keeps from one op to the next may be read faster.
#pragma once

#include "predict/roof.h"
#include "predict/step_cost.h"

namespace paceline {

/// The parts of a bound, in seconds.
struct Bound {
  double ops = 0, rules = 0, link = 0;
  double total() const { return ops + rules + link; }
};

/// An op takes the longer of its FLOPs and its bytes, the latter only when they are more than the
/// cache holds; rules take the time of their bytes, in whatever cache they lie. Ops, rules and the
/// link follow one another, for on one host all of them need the same cores.
Bound bound_of(const StepCost& work, const Roof& roof);

}  // namespace paceline
