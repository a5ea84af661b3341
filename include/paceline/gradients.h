// Derivatives in the graph: nodes that compute the gradient of a loss.
#pragma once

#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// The derivatives of `loss` by each of `values`, in their order and with their types and shapes.
/// The values can be inputs, variables or anything between. `loss` is a scalar of float32 or
/// float64. The nodes are added to the graph of the loss, can be fetched, and can be part of
/// another loss, as far as the ops of gradients have gradients themselves. The gradient of a table
/// that rows are looked up in is as large as the table. Throws kInvalidArgument when the loss is no
/// such scalar, when a value is of another graph or of no floating type, when the loss does not
/// depend on one, and on an op without gradient between.
std::vector<Value> gradients(Value loss, const std::vector<Value>& values);

}  // namespace paceline
