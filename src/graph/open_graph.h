// Graphs with open dimensions, and their copies for sizes of these.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/open_dimension.h"
#include "graph/passes.h"

namespace paceline {

/// Returns the names of the open dimensions of some values, in the order in which they come.
std::vector<std::string> open_names(std::span<const Value> values);
/// Returns an input or a local variable of the graph that has an open dimension; no value where
/// none has.
Value open_input(const Graph& graph);
/// Copies a graph for some sizes: inputs and local variables have them, and the types of all other
/// nodes are inferred anew. Throws kInvalidArgument as Graph::add does, for sizes that do not fit.
RewrittenGraph with_sizes(const RewriteSource& source, const OpenSizes& sizes);

}  // namespace paceline
