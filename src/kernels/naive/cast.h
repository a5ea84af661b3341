// Conversions between all element types, by plain loops.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline {

/// Converts y[i] = x[i] to another type, for i in [0, n).
using CastFunction = void (*)(const void* x, void* y, std::int64_t n);
CastFunction cast_function(DType from, DType to);

}  // namespace paceline
