// For tests: counts the variables of a graph and their elements.
#pragma once

#include <cstdint>

#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline::models {

struct VariableCount {
  std::int64_t tensors = 0, parameters = 0;
};

inline VariableCount variables_of(const Graph& graph) {
  VariableCount found;
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "variable") continue;
    ++found.tensors;
    found.parameters += node->outputs()[0].shape.elements();
  }
  return found;
}

}  // namespace paceline::models
