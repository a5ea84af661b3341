// Batch normalisation of the channels of images. Fusion makes the variants with an activation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/image.h"
#include "paceline/error.h"
#include "paceline/ops.h"
#include "paceline/rule.h"

namespace paceline {

namespace {

/// Fails unless input i has one number for each channel.
void expect_channels(const OpInputs& in, int i, const char* what, const ImageShape& image) {
  expect_shape(in, i, what, Shape{image.c});
}

void expect_epsilon(const OpInputs& in) {
  const double epsilon = in.attributes.get<double>("epsilon");
  if (epsilon > 0 && std::isfinite(epsilon)) return;
  in.fail(fmt::format("epsilon is {}; it must be above 0", epsilon));
}

/// Checks the slope of a fused activation; relu counts as leaky_relu with slope 0.
void expect_slope(const OpInputs& in) {
  const double slope = in.attributes.get<double>("slope");
  if (!(slope >= 0) || !std::isfinite(slope)) {
    in.fail(fmt::format("slope is {}; it must not be negative", slope));
  }
}

/// Checks the `count` inputs: x, gains, offsets and, if there are five, means and variances.
ImageShape expect_normalized(const OpInputs& in, std::size_t count) {
  in.expect_count(count);
  expect_one_float_type(in, count);
  const ImageShape x = expect_image(in, 0, "x");
  const char* const names[] = {"gains", "offsets", "means", "variances"};
  for (std::size_t i = 1; i < count; ++i) expect_channels(in, int(i), names[i - 1], x);
  expect_epsilon(in);
  return x;
}

// Outputs: y, and the mean and biased variance of each channel.
std::vector<ValueType> infer_batch_norm(const OpInputs& in) {
  const ImageShape x = expect_normalized(in, 3);
  if (x.n == 0) in.fail("no statistics of no images: " + in.shape(0).str());
  const ValueType channels{in.dtype(0), Shape{x.c}};
  return {in.types[0], channels, channels};
}

std::vector<ValueType> infer_batch_norm_inference(const OpInputs& in) {
  expect_normalized(in, 5);
  return {in.types[0]};
}

// Inputs: dy, x, gains, means, variances, and, if an activation follows, offsets. Outputs: the
// gradients of x, gains and offsets.
std::vector<ValueType> infer_batch_norm_grad_of(const OpInputs& in, std::size_t count) {
  in.expect_count(count);
  expect_one_float_type(in, count);
  const ImageShape x = expect_image(in, 1, "x");
  expect_shape(in, 0, "gradient", in.shape(1));
  const char* const names[] = {"gains", "means", "variances", "offsets"};
  for (std::size_t i = 2; i < count; ++i) expect_channels(in, int(i), names[i - 2], x);
  expect_epsilon(in);
  const ValueType channels{in.dtype(0), Shape{x.c}};
  return {in.types[0], channels, channels};
}
std::vector<ValueType> infer_batch_norm_grad(const OpInputs& in) {
  return infer_batch_norm_grad_of(in, 5);
}
std::vector<ValueType> infer_batch_norm_activation(const OpInputs& in) {
  expect_slope(in);
  return infer_batch_norm(in);
}
std::vector<ValueType> infer_batch_norm_activation_grad(const OpInputs& in) {
  expect_slope(in);
  return infer_batch_norm_grad_of(in, 6);
}

std::vector<ValueType> infer_batch_norm_inference_activation(const OpInputs& in) {
  expect_slope(in);
  return infer_batch_norm_inference(in);
}

std::vector<Gradient> batch_norm_gradient(const Node& node, std::span<const Value> dy) {
  if (dy[1] || dy[2]) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[batch_norm] {}: only output 0 has a gradient", node.name()));
  }
  const Value inputs[] = {dy[0], node.input(0), node.input(1), node.output(1), node.output(2)};
  const Node& grad = node.graph().add("batch_norm_grad", inputs, node.attributes());
  return {grad.output(0), grad.output(1), grad.output(2)};
}

std::vector<Gradient> batch_norm_inference_gradient(const Node& node, std::span<const Value> dy) {
  const Value inputs[] = {dy[0], node.input(0), node.input(1), node.input(3), node.input(4)};
  const Node& grad = node.graph().add("batch_norm_inference_grad", inputs, node.attributes());
  return {grad.output(0), grad.output(1), grad.output(2), {}, {}};
}

Value ones(Graph& graph, const Shape& shape, DType dtype) {
  const Tensor numbers(dtype, shape);
  if (dtype == DType::kFloat64) {
    std::ranges::fill(numbers.data<double>(), 1.0);
  } else {
    std::ranges::fill(numbers.data<float>(), 1.0f);
  }
  return graph.constant(numbers, "gains");
}

Op norm_op(const char* name, decltype(Op::infer) infer, double flops) {
  Op op;
  op.name = name;
  op.infer = std::move(infer);
  op.cost = elementwise_cost(flops);
  op.in_place = {0};
  return op;
}

void add_batch_norm_gradients(OpRegistry& ops) {
  for (const char* name : {"batch_norm_grad", "batch_norm_inference_grad"}) {
    Op grad = norm_op(name, infer_batch_norm_grad, 12);
    grad.no_gradient = "second derivatives are not implemented";
    grad.in_place = {0, 1};
    ops.add(std::move(grad));
  }
  Op fused = norm_op("batch_norm_activation_grad", infer_batch_norm_activation_grad, 14);
  fused.no_gradient = "it is made by fusion, after differentiation";
  fused.in_place = {0, 1};
  ops.add(std::move(fused));
}

}  // namespace

void add_batch_norm_ops(OpRegistry& ops) {
  Op norm = norm_op("batch_norm", infer_batch_norm, 6);
  norm.gradient = batch_norm_gradient;
  ops.add(std::move(norm));
  Op fused = norm_op("batch_norm_activation", infer_batch_norm_activation, 7);
  fused.no_gradient = "it is made by fusion, after differentiation";
  ops.add(std::move(fused));
  Op given = norm_op("batch_norm_inference_activation", infer_batch_norm_inference_activation, 3);
  given.no_gradient = "it is made by fusion, after differentiation";
  ops.add(std::move(given));
  Op inference = norm_op("batch_norm_inference", infer_batch_norm_inference, 2);
  inference.gradient = batch_norm_inference_gradient;
  ops.add(std::move(inference));
  add_batch_norm_gradients(ops);
}

BatchNormOutput batch_norm(Value x, Value gains, Value offsets, double epsilon) {
  const Value inputs[] = {x, gains, offsets};
  const Node& node = x.graph().add("batch_norm", inputs, {{"epsilon", epsilon}});
  return {node.output(0), node.output(1), node.output(2)};
}

Value batch_norm(Value x, std::string_view name, const BatchNormOptions& options) {
  const Shape& shape = x.shape();
  if (shape.rank() == 2) {
    const Value images = reshape(x, {shape[0], shape[1], 1, 1});
    return reshape(batch_norm(images, name, options), {shape[0], shape[1]});
  }
  Graph& graph = x.graph();
  const auto scope = graph.scope(name);
  const Shape channels{shape.rank() == 4 ? shape[1] : 1};  // the op refuses other ranks
  const auto variable = [&](const char* of, float value) {
    return graph.variable(of, channels, Initializer::constant(value), x.dtype());
  };
  const Value gains = options.gains ? variable("gains", 1) : ones(graph, channels, x.dtype());
  const Value offsets = variable("offsets", 0);
  const Value mean = variable("moving_mean", 0), variance = variable("moving_variance", 1);
  if (!options.training) {
    return batch_norm_inference(x, gains, offsets, mean, variance, options.epsilon);
  }
  const BatchNormOutput out = batch_norm(x, gains, offsets, options.epsilon);
  const Ema moving{.decay = float(options.momentum)};
  graph.contribute(mean, out.means, moving);
  graph.contribute(variance, out.variances, moving);
  return out.y;
}

Value batch_norm_inference(Value x, Value gains, Value offsets, Value means, Value variances,
                           double epsilon) {
  return x.graph().apply("batch_norm_inference", {x, gains, offsets, means, variances},
                         {{"epsilon", epsilon}});
}

}  // namespace paceline
