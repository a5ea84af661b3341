// For tests: the numbers of one training step of a model.
#pragma once

#include <string>
#include <vector>

#include "kernels/evaluate.h"
#include "paceline/minimize.h"

namespace paceline::testing {

/// The values that a step reads: initial variables, zeros for locals, and inputs at random; ids
/// from 0 to 9.
Feeds step_feeds(const Graph& graph);
/// Returns feeds with variables as after a training: none is all zeros or ones, so that none can be
/// taken for another.
Feeds trained_feeds(const Graph& graph);

struct Root {
  std::string name;
  Value value;
};
/// The values that a step computes: "loss", and by the variable's name each contribution, a sparse
/// one as its rows.
std::vector<Root> roots_of(const Training& training);

}  // namespace paceline::testing
