// Checks that several ops use for their inputs, and the cost functions of ops.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "paceline/op.h"

namespace paceline {

/// Fails unless inputs [0, count) are all float32 or all float64.
void expect_one_float_type(const OpInputs& in, std::size_t count);
/// Fails unless input i, called `what` in the message, has the shape.
void expect_shape(const OpInputs& in, int i, std::string_view what, const Shape& shape);
/// Fails unless input i, called `what` in the message, has `rank` dimensions.
void expect_rank(const OpInputs& in, int i, std::string_view what, int rank);
/// Fails unless input i, called `what` in the message, is int32.
void expect_int32(const OpInputs& in, int i, std::string_view what);

/// Returns the index, from 0, of the dimension `axis` in a tensor of `rank` dimensions. A negative
/// `axis` counts from the end. Fails if there is no such dimension.
int expect_axis(const OpInputs& in, std::int64_t axis, int rank);
/// Returns "(3,4) with (5,6)" for the shapes of inputs 0 and 1.
std::string shapes_str(const OpInputs& in);

/// Takes the part of `whole` that begins at `begin` and has the extents `size`. Returns the index
/// in `whole` of the part's first element; −1 if the part is empty or not contiguous.
std::int64_t first_of_part(const Shape& whole, std::span<const std::int64_t> begin,
                           std::span<const std::int64_t> size);
/// Returns the bytes of all inputs and outputs, each counted once.
double moved_bytes(const Node& node);
/// Returns the number of elements of output 0.
double output_elements(const Node& node);
/// Returns the cost function of an op that takes `flops` operations for each element of output 0.
std::function<Cost(const Node&)> elementwise_cost(double flops);
/// Returns the cost function of an op of fusable_ops(), with the FLOPs that are listed there.
std::function<Cost(const Node&)> fusable_cost(std::string_view op);

}  // namespace paceline
