// How a variable's node keeps its initializer.
#pragma once

#include "paceline/graph.h"

namespace paceline {

/// Attributes "init_kind" (int64), "init_a", "init_b" (double) and "init_glorot" (bool).
void set_initializer(Attributes& attributes, const Initializer& initializer);
/// Returns the initializer of a node of op "variable".
Initializer initializer_of(const Node& variable);

}  // namespace paceline
