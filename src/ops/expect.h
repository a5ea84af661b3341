// What several ops demand of their inputs, and the memory that every op moves.
#pragma once

#include <string_view>

#include "paceline/op.h"

namespace paceline {

/// Fails unless inputs [0, count) are all float32 or all float64.
void expect_one_float_type(const OpInputs& in, std::size_t count);
/// Fails unless input i, called `what` in the message, has the shape.
void expect_shape(const OpInputs& in, int i, std::string_view what, const Shape& shape);
/// Fails unless input i has that many dimensions.
void expect_rank(const OpInputs& in, int i, std::string_view what, int rank);
/// Fails unless input i is int32.
void expect_int32(const OpInputs& in, int i, std::string_view what);

/// Inputs and outputs, once each.
double moved_bytes(const Node& node);

}  // namespace paceline
