// How a variable's node keeps its initializer.
#pragma once

#include "paceline/graph.h"

namespace paceline {

/// Sets the attributes "init_kind" (int64), "init_a", "init_b" (double), "init_glorot" (bool) and,
/// for given values, "init_given" (Tensor).
void set_initializer(Attributes& attributes, const Initializer& initializer);
/// Returns the initializer of a node of op "variable".
Initializer initializer_of(const Node& variable);

}  // namespace paceline
