// Numbers as operands.
#pragma once

#include "paceline/graph.h"

namespace paceline {

/// Adds a constant scalar to the graph of x: float64 if x is, else float32.
Value scalar_like(Value x, double number);

}  // namespace paceline
