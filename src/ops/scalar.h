// Numbers as operands.
#pragma once

#include "paceline/graph.h"

namespace paceline {

/// A constant scalar in the graph of x, of its type where that is float64, else float32.
Value scalar_like(Value x, double number);

}  // namespace paceline
