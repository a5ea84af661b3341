// The norm of all gradients of a training.
#pragma once

#include <span>

#include "paceline/minimize.h"

namespace paceline {

/// Adds the norm of all contributions whose rule takes a gradient to the graph, and returns it.
/// Returns no value if no rule takes a gradient.
Value norm_of_gradients(std::span<const VariableUpdate> updates);

/// Makes a session leave out contributions whose norm is not finite.
void skip_not_finite(Training& training);

}  // namespace paceline
