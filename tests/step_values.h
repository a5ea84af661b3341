// For tests: the numbers that one training step of a model reads and computes.
#pragma once

#include <string>
#include <vector>

#include "kernels/evaluate.h"
#include "paceline/minimize.h"

namespace paceline::testing {

/// Returns the values that a step reads: the variables' initial values, zeros for locals, and
/// random inputs; ids are from 0 to 9.
Feeds step_feeds(const Graph& graph);
/// Returns feeds in which variables look as after a training: none has only zeros or ones, so that
/// none can be mistaken for another.
Feeds trained_feeds(const Graph& graph);

struct Root {
  std::string name;
  Value value;
};
/// Returns the values that a step computes: "loss", and each contribution by its variable's name; a
/// sparse contribution is given as its rows.
std::vector<Root> roots_of(const Training& training);

}  // namespace paceline::testing
