// What families of ops demand of their inputs, and what many of them cost.
#pragma once

#include "paceline/op.h"

namespace paceline {

/// Throws unless input i is float32 or float64.
void expect_floating(const OpInputs& in, int i = 0);
/// Throws unless all inputs have the element type of the first, which is float32 or float64.
void expect_one_floating_type(const OpInputs& in);
/// `axis` of a tensor of `rank` dimensions, a negative one counted from the end; throws when there
/// is no such axis.
int expect_axis(const OpInputs& in, std::int64_t axis, int rank);
/// "(3,4) with (5,6)" of inputs 0 and 1.
std::string shapes_str(const OpInputs& in);

/// Bytes of all inputs and outputs.
double touched_bytes(const Node& node);
/// Elements of output 0.
double output_elements(const Node& node);
/// The cost function of an op that does `flops` operations for each element of output 0.
std::function<Cost(const Node&)> cost_per_element(double flops);

}  // namespace paceline
