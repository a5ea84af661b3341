// The number of examples of a step.
#pragma once

#include <cstdint>

#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

/// Returns dimension 0 of the graph's first input, which counts the examples of a batch unless the
/// program says otherwise; 1 if there is no input, or that input is a scalar.
inline std::int64_t first_dimension_of_inputs(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "input") continue;
    const Shape& shape = node->outputs()[0].shape;
    return shape.rank() > 0 ? shape[0] : 1;
  }
  return 1;
}

}  // namespace paceline
