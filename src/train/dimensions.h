// The number of examples of a step.
#pragma once

#include <cstdint>

#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

/// Returns that of the first input, which counts them unless the program says another.
inline std::int64_t first_dimension_of_inputs(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "input") continue;
    const Shape& shape = node->outputs()[0].shape;
    return shape.rank() > 0 ? shape[0] : 1;
  }
  return 1;
}

}  // namespace paceline
