// A graph as TensorBoard draws it.
#pragma once

#include <string>

#include "paceline/graph.h"

namespace paceline {

/// The bytes of a GraphDef: nodes by their scoped names, with ops, inputs, types, shapes and
/// attributes.
std::string graph_def(const Graph& graph);

}  // namespace paceline
