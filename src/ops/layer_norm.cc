#include <fmt/format.h>

#include <cmath>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

/// Returns the shape of x without its last dimension: one element for each row.
Shape rows_of(const Shape& x) { return Shape(x.dims().first(x.dims().size() - 1)); }

/// Fails unless input i, which is x (…,n), has rows with elements.
void expect_nonempty_rows(const OpInputs& in, int i) {
  const Shape& x = in.shape(i);
  if (x.rank() == 0) in.fail("x is a scalar; at least one dimension is needed");
  if (x[-1] == 0) in.fail(fmt::format("rows of {} are empty", x.str()));
}

// Outputs 1 and 2 are the mean and 1/√(variance + epsilon) of each row, which the gradient needs.
std::vector<ValueType> infer_layer_norm(const OpInputs& in) {
  in.expect_count(3);
  expect_one_float_type(in, 3);
  expect_nonempty_rows(in, 0);
  expect_shape(in, 1, "gains", Shape{in.shape(0)[-1]});
  expect_shape(in, 2, "offsets", Shape{in.shape(0)[-1]});
  const double epsilon = in.attributes.get<double>("epsilon");
  if (!(epsilon > 0) || !std::isfinite(epsilon)) {
    in.fail(fmt::format("epsilon is {}; it must be above 0", epsilon));
  }
  const ValueType row{in.dtype(0), rows_of(in.shape(0))};
  return {in.types[0], row, row};
}

std::vector<Gradient> layer_norm_gradient(const Node& node, std::span<const Value> dy) {
  if (dy[1] || dy[2]) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[layer_norm] {}: only output 0 has a gradient", node.name()));
  }
  const Value inputs[] = {dy[0], node.input(0), node.input(1), node.output(1), node.output(2)};
  const Node& grad = node.graph().add("layer_norm_grad", inputs);
  return {grad.output(0), grad.output(1), grad.output(2)};
}

// Inputs: dy, x, gains, means, scales. Outputs: the gradients of x, gains and offsets.
std::vector<ValueType> infer_layer_norm_grad(const OpInputs& in) {
  in.expect_count(5);
  expect_one_float_type(in, 5);
  expect_nonempty_rows(in, 1);
  const ValueType column{in.dtype(0), Shape{in.shape(1)[-1]}};
  expect_shape(in, 0, "gradient", in.shape(1));
  expect_shape(in, 2, "gains", column.shape);
  expect_shape(in, 3, "means", rows_of(in.shape(1)));
  expect_shape(in, 4, "scales", rows_of(in.shape(1)));
  return {in.types[1], column, column};
}

}  // namespace

void add_layer_norm_ops(OpRegistry& ops) {
  Op op;
  op.name = "layer_norm";
  op.infer = infer_layer_norm;
  op.gradient = layer_norm_gradient;
  op.cost = elementwise_cost(8);
  op.in_place = {0};
  ops.add(std::move(op));

  Op grad;
  grad.name = "layer_norm_grad";
  grad.infer = infer_layer_norm_grad;
  grad.no_gradient = "second derivatives are not implemented";
  grad.cost = elementwise_cost(16);
  grad.in_place = {0, 1};
  ops.add(std::move(grad));
}

Value layer_norm(Value x, Value gains, Value offsets, double epsilon) {
  return x.graph().apply("layer_norm", {x, gains, offsets}, {{"epsilon", epsilon}});
}

Value layer_norm(Value x, std::string_view name, double epsilon) {
  Graph& graph = x.graph();
  const auto scope = graph.scope(name);
  // If x is a scalar, the op refuses it.
  const Shape columns{x.shape().rank() == 0 ? 1 : x.shape()[-1]};
  const Value gains = graph.variable("gains", columns, Initializer::constant(1), x.dtype());
  const Value offsets = graph.variable("offsets", columns, Initializer::zeros(), x.dtype());
  return layer_norm(x, gains, offsets, epsilon);
}

}  // namespace paceline
