// Convolutions of images, and a convolution with an activation in one pass. Fusion makes the
// latter, so it has no gradient.
#include <fmt/format.h>

#include <algorithm>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/image.h"
#include "ops/padding.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Extents = std::vector<std::int64_t>;

/// Returns the window of weights of shape (O,C/groups,height,width).
Window2d window_over(const OpInputs& in, const Shape& weights) {
  Window2d window = Window2d::of(in.attributes);
  window.size = {weights[2], weights[3]};
  return window;
}

/// Fails unless weights of this shape fit the image's channels and the attribute "groups".
void expect_weights(const OpInputs& in, const ImageShape& image, const Shape& weights) {
  const std::int64_t groups = in.attributes.get<std::int64_t>("groups");
  const bool good = groups > 0 && weights[0] > 0 && weights[2] > 0 && weights[3] > 0 &&
                    image.c % groups == 0 && weights[0] % groups == 0 &&
                    weights[1] == image.c / groups;
  if (good) return;
  in.fail(fmt::format("cannot convolve {} channels with weights {} in {} group{}", image.c,
                      weights.str(), groups, groups == 1 ? "" : "s"));
}

// Inputs: x, weights and, if there are three, biases.
std::vector<ValueType> infer_conv2d(const OpInputs& in) {
  const bool biased = in.types.size() != 2;
  if (biased) in.expect_count(3);
  expect_one_float_type(in, in.types.size());
  const ImageShape x = expect_image(in, 0, "x");
  expect_rank(in, 1, "weights", 4);
  const Shape& weights = in.shape(1);
  expect_weights(in, x, weights);
  if (biased) expect_shape(in, 2, "biases", Shape{weights[0]});
  const auto [h, w] = expect_windows(in, window_over(in, weights), x);
  const ImageShape y{x.n, weights[0], h, w};
  return {{in.dtype(0), y.shape(channels_last(in.attributes))}};
}

/// Fails unless input i has the shape of dy: that of the output if x is convolved with weights of
/// this shape.
void expect_conv_gradient(const OpInputs& in, int i, const ImageShape& x, const Shape& weights) {
  expect_weights(in, x, weights);
  const auto [h, w] = expect_windows(in, window_over(in, weights), x);
  expect_shape(in, i, "gradient",
               ImageShape{x.n, weights[0], h, w}.shape(channels_last(in.attributes)));
}

// Inputs: dy and weights. Output: dx. The attribute "extents" is the height and width of x.
std::vector<ValueType> infer_conv2d_input_grad(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  expect_rank(in, 1, "weights", 4);
  const Extents& extents = in.attributes.get<Extents>("extents");
  const std::int64_t groups = in.attributes.get<std::int64_t>("groups");
  const ImageShape dy = expect_image(in, 0, "gradient");
  const ImageShape x{dy.n, in.shape(1)[1] * groups, extents.at(0), extents.at(1)};
  expect_conv_gradient(in, 0, x, in.shape(1));
  return {{in.dtype(0), x.shape(channels_last(in.attributes))}};
}

// Inputs: x and dy. Outputs: the gradient of the weights and, with the attribute "biased", that of
// the biases. "size" is the height and width of the weights.
std::vector<ValueType> infer_conv2d_weights_grad(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  const ImageShape x = expect_image(in, 0, "x"), dy = expect_image(in, 1, "gradient");
  const Window2d window = Window2d::of(in.attributes);
  const std::int64_t groups = in.attributes.get<std::int64_t>("groups");
  const Shape weights{dy.c, groups > 0 ? x.c / groups : 0, window.size[0], window.size[1]};
  expect_conv_gradient(in, 1, x, weights);
  if (!in.attributes.get<bool>("biased")) return {{in.dtype(0), weights}};
  return {{in.dtype(0), weights}, {in.dtype(0), Shape{dy.c}}};
}

std::vector<Gradient> conv2d_gradient(const Node& node, std::span<const Value> dy) {
  Graph& graph = node.graph();
  const Shape& weights = node.input(1).shape();
  const bool last = channels_last(node.attributes()), biased = node.inputs().size() == 3;
  const ImageShape x = ImageShape::of(node.input(0).shape(), last);
  Attributes of_input = node.attributes(), of_weights = node.attributes();
  of_input.set("extents", Extents{x.h, x.w});
  of_weights.set("size", Extents{weights[2], weights[3]});
  of_weights.set("biased", biased);
  const Value inputs[] = {node.input(0), dy[0]};
  const Node& grad = graph.add("conv2d_weights_grad", inputs, of_weights);
  const Value dx = graph.apply("conv2d_input_grad", {dy[0], node.input(1)}, of_input);
  std::vector<Gradient> gradients = {dx, grad.output(0)};
  if (biased) gradients.push_back(grad.output(1));
  return gradients;
}

/// The attribute "activation" is relu or leaky_relu. "slope" must be set for both; it is 0 for
/// relu.
std::vector<ValueType> infer_conv2d_activation(const OpInputs& in) {
  const std::string& activation = in.attributes.get<std::string>("activation");
  if (activation != "relu" && activation != "leaky_relu") {
    in.fail("knows no activation " + activation);
  }
  in.attributes.get<double>("slope");
  return infer_conv2d(in);
}

/// `dy` is the output of the convolution, or its gradient. Each element of `dy` takes a product
/// with each weight of the element's output channel.
Cost conv2d_cost(const Node& node, const Value& dy, const Shape& weights) {
  const double products = double(weights[1] * weights[2] * weights[3]);
  return {2 * products * double(dy.shape().elements()), moved_bytes(node)};
}

}  // namespace

void add_conv2d_ops(OpRegistry& ops) {
  Op conv;
  conv.name = "conv2d";
  conv.infer = infer_conv2d;
  conv.gradient = conv2d_gradient;
  conv.cost = [](const Node& n) { return conv2d_cost(n, n.output(0), n.input(1).shape()); };
  ops.add(conv);

  conv.name = "conv2d_activation";
  conv.infer = infer_conv2d_activation;
  conv.gradient = nullptr;
  conv.no_gradient = "it is made by fusion, after differentiation";
  ops.add(std::move(conv));

  Op input_grad;
  input_grad.name = "conv2d_input_grad";
  input_grad.infer = infer_conv2d_input_grad;
  input_grad.no_gradient = "second derivatives are not implemented";
  input_grad.cost = [](const Node& n) { return conv2d_cost(n, n.input(0), n.input(1).shape()); };
  ops.add(std::move(input_grad));

  Op weights_grad;
  weights_grad.name = "conv2d_weights_grad";
  weights_grad.infer = infer_conv2d_weights_grad;
  weights_grad.no_gradient = "second derivatives are not implemented";
  weights_grad.cost = [](const Node& n) {
    return conv2d_cost(n, n.input(1), n.outputs()[0].shape);
  };
  ops.add(std::move(weights_grad));
}

namespace {

Value add_conv2d(std::initializer_list<Value> inputs, const Shape& x, const Shape& weights,
                 const Conv2dOptions& options) {
  std::array<std::int64_t, 2> reach = {1, 1};
  for (std::size_t d = 0; d < 2 && weights.rank() == 4; ++d) {
    reach[d] = options.dilations[d] * (weights[int(d) + 2] - 1) + 1;
  }
  return inputs.begin()->graph().apply(
      "conv2d", inputs,
      {{"strides", attribute_of(options.strides)},
       {"dilations", attribute_of(options.dilations)},
       {"pads", pads_of(options.padding, x, reach, options.strides)},
       {"groups", options.groups}});
}

}  // namespace

Value conv2d(Value x, Value weights, const Conv2dOptions& options) {
  return add_conv2d({x, weights}, x.shape(), weights.shape(), options);
}

Value conv2d(Value x, Value weights, Value biases, const Conv2dOptions& options) {
  return add_conv2d({x, weights, biases}, x.shape(), weights.shape(), options);
}

Value conv2d(Value x, std::int64_t channels, std::int64_t size, std::string_view name,
             const Conv2dOptions& options, const Initializer& weights,
             const std::optional<Initializer>& biases) {
  Graph& graph = x.graph();
  const auto scope = graph.scope(name);
  // If x or the groups are wrong, the op refuses them; the number of channels is then a guess.
  const std::int64_t groups = std::max<std::int64_t>(options.groups, 1);
  const std::int64_t inputs = x.shape().rank() == 4 ? x.shape()[1] / groups : 1;
  const Value w = graph.variable("w", Shape{channels, inputs, size, size}, weights, x.dtype());
  if (!biases) return conv2d(x, w, options);
  return conv2d(x, w, graph.variable("b", Shape{channels}, *biases, x.dtype()), options);
}

}  // namespace paceline
