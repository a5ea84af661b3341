// Ops for the maximum and the mean of windows in each channel of an image.
#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/image.h"
#include "ops/padding.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Extents = std::vector<std::int64_t>;

// One byte stores the place of a maximum in its window.
constexpr std::int64_t kMostWindowElements = 256;

/// Returns the shape of the output for images x. Fails if a window could lie wholly in the padding.
Shape expect_pool(const OpInputs& in, const ImageShape& x) {
  const Window2d window = Window2d::of(in.attributes);
  const auto [h, w] = expect_windows(in, window, x);
  if (window.size[0] * window.size[1] > kMostWindowElements) {
    in.fail(fmt::format("a window of ({}) has more than {} elements; reduce whole images instead",
                        fmt::join(window.size, ","), kMostWindowElements));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    if (window.pads[i] < window.size[i % 2]) continue;
    in.fail(fmt::format("padding ({}) is as wide as a window of ({})", fmt::join(window.pads, ","),
                        fmt::join(window.size, ",")));
  }
  return ImageShape{x.n, x.c, h, w}.shape(channels_last(in.attributes));
}

std::vector<ValueType> infer_avg_pool2d(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  return {{in.dtype(0), expect_pool(in, expect_image(in, 0, "x"))}};
}

// Output 1 is the place of each maximum in its window, counted row by row; the gradient needs it.
std::vector<ValueType> infer_max_pool2d(const OpInputs& in) {
  const std::vector<ValueType> y = infer_avg_pool2d(in);
  return {y[0], {DType::kUInt8, y[0].shape}};
}

// The maxima of relu(x). A window without an element above zero gets the place kNoPlace, which no
// element has, so that the gradient of the window is zero.
std::vector<ValueType> infer_relu_max_pool2d(const OpInputs& in) {
  std::vector<ValueType> y = infer_max_pool2d(in);
  const Window2d window = Window2d::of(in.attributes);
  if (window.size[0] * window.size[1] > kNoPlace) {
    in.fail(fmt::format("a window of ({}) has more than {} elements", fmt::join(window.size, ","),
                        kNoPlace));
  }
  return y;
}

/// Returns the extents of x in a gradient op, whose input 0 is dy. The attribute "extents" has the
/// height and width of x.
ImageShape pooled_image(const OpInputs& in) {
  const ImageShape dy = expect_image(in, 0, "gradient");
  const Extents& extents = in.attributes.get<Extents>("extents");
  const ImageShape x{dy.n, dy.c, extents.at(0), extents.at(1)};
  expect_shape(in, 0, "gradient", expect_pool(in, x));
  return x;
}

// Input: dy. Output: dx.
std::vector<ValueType> infer_avg_pool2d_grad(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  return {{in.dtype(0), pooled_image(in).shape(channels_last(in.attributes))}};
}

// Inputs: dy and the places of the maxima. Output: dx.
std::vector<ValueType> infer_max_pool2d_grad(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 1);
  if (in.dtype(1) != DType::kUInt8) in.fail("places are " + in.types[1].str() + ", not uint8");
  expect_shape(in, 1, "places", in.shape(0));
  return {{in.dtype(0), pooled_image(in).shape(channels_last(in.attributes))}};
}

Attributes gradient_attributes(const Node& node) {
  const ImageShape x = ImageShape::of(node.input(0).shape(), channels_last(node.attributes()));
  Attributes attributes = node.attributes();
  attributes.set("extents", Extents{x.h, x.w});
  return attributes;
}

std::vector<Gradient> max_pool2d_gradient(const Node& node, std::span<const Value> dy) {
  return {
      node.graph().apply("max_pool2d_grad", {dy[0], node.output(1)}, gradient_attributes(node))};
}

std::vector<Gradient> avg_pool2d_gradient(const Node& node, std::span<const Value> dy) {
  return {node.graph().apply("avg_pool2d_grad", {dy[0]}, gradient_attributes(node))};
}

/// Returns the cost of a pool. The smaller image is the output if `forward`, else input 0.
auto pool_cost(bool forward) {
  return [forward](const Node& node) {
    const Window2d window = Window2d::of(node.attributes());
    const Shape& small = forward ? node.outputs()[0].shape : node.input(0).shape();
    return Cost{double(window.size[0] * window.size[1] * small.elements()), moved_bytes(node)};
  };
}

Op pool(const char* name, decltype(Op::infer) infer, bool forward) {
  Op op;
  op.name = name;
  op.infer = std::move(infer);
  op.cost = pool_cost(forward);
  return op;
}

}  // namespace

void add_pool2d_ops(OpRegistry& ops) {
  Op max = pool("max_pool2d", infer_max_pool2d, true);
  max.gradient = max_pool2d_gradient;
  ops.add(std::move(max));
  Op relu_max = pool("relu_max_pool2d", infer_relu_max_pool2d, true);
  relu_max.gradient = max_pool2d_gradient;
  ops.add(std::move(relu_max));
  Op average = pool("avg_pool2d", infer_avg_pool2d, true);
  average.gradient = avg_pool2d_gradient;
  ops.add(std::move(average));

  Op max_grad = pool("max_pool2d_grad", infer_max_pool2d_grad, false);
  max_grad.no_gradient = "second derivatives are not implemented";
  ops.add(std::move(max_grad));
  Op average_grad = pool("avg_pool2d_grad", infer_avg_pool2d_grad, false);
  average_grad.no_gradient = "second derivatives are not implemented";
  ops.add(std::move(average_grad));
}

namespace {

Value add_pool2d(const char* op, Value x, const Pool2dOptions& options) {
  return x.graph().apply(
      op, {x},
      {{"size", attribute_of(options.size)},
       {"strides", attribute_of(options.strides)},
       {"pads", pads_of(options.padding, x.shape(), options.size, options.strides)}});
}

}  // namespace

Value max_pool2d(Value x, const Pool2dOptions& options) {
  return add_pool2d("max_pool2d", x, options);
}
Value avg_pool2d(Value x, const Pool2dOptions& options) {
  return add_pool2d("avg_pool2d", x, options);
}

}  // namespace paceline
