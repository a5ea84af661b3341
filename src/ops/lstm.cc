#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

struct LstmSizes {
  std::int64_t steps, batch, inputs, hidden;
};

LstmSizes sizes_of(const Shape& x, const Shape& state) { return {x[0], x[1], x[2], state[1]}; }

// Checks the inputs that the op and its gradient share: x, state h, state c and weights.
LstmSizes expect_lstm_inputs(const OpInputs& in) {
  expect_rank(in, 0, "x", 3);
  expect_rank(in, 1, "state h", 2);
  const LstmSizes s = sizes_of(in.shape(0), in.shape(1));
  if (s.steps == 0) in.fail(fmt::format("x {} has no steps", in.shape(0).str()));
  expect_shape(in, 1, "state h", Shape{s.batch, s.hidden});
  expect_shape(in, 2, "state c", Shape{s.batch, s.hidden});
  expect_shape(in, 3, "weights", Shape{s.inputs + s.hidden, 4 * s.hidden});
  return s;
}

// Outputs 3 and 4 are for the gradient: the activated gates i, j, f, o (T,N,4H) and the cells c
// of each step (T,N,H).
std::vector<ValueType> infer_lstm(const OpInputs& in) {
  in.expect_count(5);
  expect_one_float_type(in, 5);
  in.attributes.get<double>("forget_bias");
  const LstmSizes s = expect_lstm_inputs(in);
  expect_shape(in, 4, "biases", Shape{4 * s.hidden});
  const DType dtype = in.dtype(0);
  const ValueType state{dtype, Shape{s.batch, s.hidden}};
  const ValueType sequence{dtype, Shape{s.steps, s.batch, s.hidden}};
  const ValueType gates{dtype, Shape{s.steps, s.batch, 4 * s.hidden}};
  return {sequence, state, state, gates, sequence};
}

// The inputs of the gradient op are the seven values of `inputs`, and then the gradients of those
// outputs that have one. The attributes has_outputs, has_h and has_c say which outputs have one.
std::vector<Gradient> lstm_gradient(const Node& node, std::span<const Value> output_gradients) {
  if (output_gradients[3] || output_gradients[4]) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[lstm] {}: only outputs 0, 1 and 2 have a gradient", node.name()));
  }
  std::vector<Value> inputs = {node.input(0),  node.input(1),  node.input(2), node.input(3),
                               node.output(0), node.output(3), node.output(4)};
  Attributes attributes;
  const char* names[] = {"has_outputs", "has_h", "has_c"};
  for (std::size_t i = 0; i < 3; ++i) {
    attributes.set(names[i], bool(output_gradients[i]));
    if (output_gradients[i]) inputs.push_back(output_gradients[i]);
  }
  std::vector<Gradient> gradients(5);
  if (inputs.size() == 7) return gradients;
  const Node& grad = node.graph().add("lstm_grad", inputs, attributes);
  for (int i = 0; i < 5; ++i) gradients[std::size_t(i)].dense = grad.output(i);
  return gradients;
}

// Outputs: the gradients of x, state h, state c, weights and biases.
std::vector<ValueType> infer_lstm_grad(const OpInputs& in) {
  std::size_t count = 7;
  for (const char* name : {"has_outputs", "has_h", "has_c"}) {
    count += in.attributes.get<bool>(name) ? 1 : 0;
  }
  in.expect_count(count);
  expect_one_float_type(in, count);
  const LstmSizes s = expect_lstm_inputs(in);
  expect_shape(in, 4, "outputs", Shape{s.steps, s.batch, s.hidden});
  expect_shape(in, 5, "gates", Shape{s.steps, s.batch, 4 * s.hidden});
  expect_shape(in, 6, "cells", Shape{s.steps, s.batch, s.hidden});
  int next = 7;
  if (in.attributes.get<bool>("has_outputs")) {
    expect_shape(in, next++, "gradient of the outputs", Shape{s.steps, s.batch, s.hidden});
  }
  for (; next < int(count); ++next) {
    expect_shape(in, next, "gradient of the state", Shape{s.batch, s.hidden});
  }
  return {in.types[0], in.types[1], in.types[2], in.types[3], {in.dtype(0), Shape{4 * s.hidden}}};
}

// `products` is how many times all weights are multiplied; activations take about thirty FLOPs for
// each cell.
auto lstm_cost(double products) {
  return [products](const Node& node) {
    const LstmSizes s = sizes_of(node.input(0).shape(), node.input(1).shape());
    const double rows = double(s.steps * s.batch), hidden = double(s.hidden);
    return Cost{rows * hidden * (products * 8 * double(s.inputs + s.hidden) + 30),
                moved_bytes(node)};
  };
}

}  // namespace

void add_lstm_ops(OpRegistry& ops) {
  Op forward;
  forward.name = "lstm";
  forward.infer = infer_lstm;
  forward.gradient = lstm_gradient;
  forward.cost = lstm_cost(1);
  ops.add(std::move(forward));

  Op backward;
  backward.name = "lstm_grad";
  backward.infer = infer_lstm_grad;
  backward.no_gradient = "second derivatives are not implemented";
  backward.cost = lstm_cost(2);
  ops.add(std::move(backward));
}

LstmOutput lstm(Value x, Value state_h, Value state_c, Value weights, Value biases,
                double forget_bias) {
  const Value inputs[] = {x, state_h, state_c, weights, biases};
  const Node& node = x.graph().add("lstm", inputs, {{"forget_bias", forget_bias}});
  return {node.output(0), node.output(1), node.output(2)};
}

}  // namespace paceline
