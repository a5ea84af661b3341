// The norm of all gradients of a training.
#pragma once

#include <span>

#include "paceline/minimize.h"

namespace paceline {

/// Adds it to the graph; returns no value where no rule takes a gradient.
Value norm_of_gradients(std::span<const VariableUpdate> updates);

/// Lets a session leave out contributions whose norm is not finite.
void skip_not_finite(Training& training);

}  // namespace paceline
