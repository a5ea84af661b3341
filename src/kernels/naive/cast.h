// Conversions between all element types, by plain loops.
#pragma once

#include <cstdint>

#include "paceline/tensor.h"

namespace paceline {

/// A function that converts n elements of x to the type of y.
using CastFunction = void (*)(const void* x, void* y, std::int64_t n);
CastFunction cast_function(DType from, DType to);

}  // namespace paceline
