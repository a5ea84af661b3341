#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void expect_logits_and_labels(const OpInputs& in) {
  expect_one_float_type(in, 1);
  expect_rank(in, 0, "logits", 2);
  if (in.shape(0)[1] == 0) in.fail(fmt::format("logits {} have no classes", in.shape(0).str()));
  expect_int32(in, 1, "labels");
  expect_shape(in, 1, "labels", Shape{in.shape(0)[0]});
  if (!in.attributes.has("smoothing")) return;
  const double smoothing = in.attributes.get<double>("smoothing");
  if (smoothing >= 0 && smoothing < 1) return;
  in.fail(fmt::format("smoothing is {}; it must be at least 0 and below 1", smoothing));
}

// Output 1 is log Σ exp(logits) of each row; with it, the gradient needs only one pass.
std::vector<ValueType> infer_softmax_cross_entropy(const OpInputs& in) {
  in.expect_count(2);
  expect_logits_and_labels(in);
  const ValueType row{in.dtype(0), Shape{in.shape(0)[0]}};
  return {row, row};
}

std::vector<Gradient> softmax_cross_entropy_gradient(const Node& node,
                                                     std::span<const Value> output_gradients) {
  if (output_gradients[1]) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[softmax_cross_entropy] {}: only output 0 has a gradient", node.name()));
  }
  if (!output_gradients[0]) return {{}, {}};
  Gradient logits;
  logits.dense = node.graph().apply(
      "softmax_cross_entropy_grad",
      {node.input(0), node.input(1), node.output(1), output_gradients[0]}, node.attributes());
  return {logits, {}};
}

std::vector<ValueType> infer_softmax_cross_entropy_grad(const OpInputs& in) {
  in.expect_count(4);
  expect_logits_and_labels(in);
  expect_shape(in, 2, "log of sums", Shape{in.shape(0)[0]});
  expect_shape(in, 3, "gradient", Shape{in.shape(0)[0]});
  return {in.types[0]};
}

// The inputs are logits, labels, the gradient of the losses, and biases that are added to each row.
// Output 0 is the gradient of the logits, 1 the losses, 2 the gradient of the biases.
std::vector<ValueType> infer_softmax_cross_entropy_with_grad(const OpInputs& in) {
  const bool biased = in.types.size() != 3;
  if (biased) in.expect_count(4);
  expect_logits_and_labels(in);
  const ValueType row{in.dtype(0), Shape{in.shape(0)[0]}};
  expect_shape(in, 2, "gradient", row.shape);
  if (!biased) return {in.types[0], row};
  const ValueType column{in.dtype(0), Shape{in.shape(0)[1]}};
  expect_shape(in, 3, "biases", column.shape);
  return {in.types[0], row, column};
}

std::vector<ValueType> infer_mean_squared_error(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  if (in.shape(0) != in.shape(1)) {
    in.fail(fmt::format("cannot compare {} with {}", in.shape(0).str(), in.shape(1).str()));
  }
  if (in.shape(0).elements() == 0) in.fail("no mean of no elements: " + in.shape(0).str());
  return {{in.dtype(0), Shape{}}};
}

std::vector<Gradient> mean_squared_error_gradient(const Node& node,
                                                  std::span<const Value> output_gradients) {
  if (!output_gradients[0]) return {{}, {}};
  Gradient a, b;
  a.dense = node.graph().apply("mean_squared_error_grad",
                               {node.input(0), node.input(1), output_gradients[0]});
  b.dense = node.graph().apply("mean_squared_error_grad",
                               {node.input(1), node.input(0), output_gradients[0]});
  return {a, b};
}

// Inputs: a, b and the gradient of the error. Output: the gradient of a, which is 2·(a −
// b)·gradient ÷ elements.
std::vector<ValueType> infer_mean_squared_error_grad(const OpInputs& in) {
  in.expect_count(3);
  expect_one_float_type(in, 3);
  expect_shape(in, 1, "b", in.shape(0));
  expect_shape(in, 2, "gradient", Shape{});
  return {in.types[0]};
}

/// `per_element` is the number of FLOPs for each element of input 0; an exponential counts as
/// eight.
auto cost_per_element(double per_element) {
  return [per_element](const Node& node) {
    return Cost{per_element * double(node.input(0).shape().elements()), moved_bytes(node)};
  };
}

}  // namespace

void add_loss_ops(OpRegistry& ops) {
  Op entropy;
  entropy.name = "softmax_cross_entropy";
  entropy.infer = infer_softmax_cross_entropy;
  entropy.gradient = softmax_cross_entropy_gradient;
  entropy.cost = cost_per_element(10);
  ops.add(std::move(entropy));

  Op entropy_grad;
  entropy_grad.name = "softmax_cross_entropy_grad";
  entropy_grad.infer = infer_softmax_cross_entropy_grad;
  entropy_grad.no_gradient = "second derivatives are not implemented";
  entropy_grad.cost = cost_per_element(10);
  entropy_grad.in_place = {0};
  ops.add(std::move(entropy_grad));

  Op both;
  both.name = "softmax_cross_entropy_with_grad";
  both.infer = infer_softmax_cross_entropy_with_grad;
  both.no_gradient = "it is made by fusion, after differentiation";
  both.cost = cost_per_element(14);
  both.in_place = {0};
  ops.add(std::move(both));

  Op squared;
  squared.name = "mean_squared_error";
  squared.infer = infer_mean_squared_error;
  squared.gradient = mean_squared_error_gradient;
  squared.cost = cost_per_element(3);
  ops.add(std::move(squared));

  Op squared_grad;
  squared_grad.name = "mean_squared_error_grad";
  squared_grad.infer = infer_mean_squared_error_grad;
  squared_grad.no_gradient = "second derivatives are not implemented";
  squared_grad.cost = cost_per_element(2);
  squared_grad.in_place = {0, 1};
  ops.add(std::move(squared_grad));
}

Value softmax_cross_entropy(Value logits, Value labels, double smoothing) {
  Attributes attributes;
  if (smoothing != 0) attributes.set("smoothing", smoothing);
  return logits.graph().apply("softmax_cross_entropy", {logits, labels}, attributes);
}

Value mean_squared_error(Value a, Value b) { return a.graph().apply("mean_squared_error", {a, b}); }

}  // namespace paceline
