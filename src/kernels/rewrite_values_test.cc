// Rewriting with the library's own ops and kernels: every root keeps its value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "kernels/device.h"
#include "kernels/evaluate.h"
#include "paceline/minimize.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class RewriteValuesTest : public testing::Test {
 protected:
  Tensor normal(const Shape& shape, std::string_view name) {
    Tensor tensor(DType::kFloat32, shape);
    Initializer::normal(0, 1).fill(tensor.data<float>(), shape, 1, name);
    return tensor;
  }
  /// Returns values for all inputs, variables and locals; integers are 0, 1, 2, 0, …
  Feeds feeds() {
    Feeds feeds;
    for (const auto& node : graph_.nodes()) {
      const std::string& op = node->op().name;
      if (op != "input" && op != "variable" && op != "local") continue;
      const ValueType& type = node->outputs()[0];
      if (type.dtype == DType::kFloat32) feeds[node->name()] = normal(type.shape, node->name());
      if (type.dtype != DType::kInt32) continue;
      const Tensor ids(type.dtype, type.shape);
      std::int32_t next = 0;
      for (std::int32_t& id : ids.data<std::int32_t>()) id = next++ % 3;
      feeds[node->name()] = ids;
    }
    return feeds;
  }
  static std::vector<Value> roots_of(const Training& training) {
    std::vector<Value> roots = {training.loss};
    if (training.global_norm) roots.push_back(training.global_norm);
    for (const VariableUpdate& update : training.updates) {
      const Gradient& gradient = update.contribution;
      roots.push_back(gradient.sparse() ? gradient.rows : gradient.dense);
      if (gradient.sparse()) roots.push_back(gradient.ids);
    }
    return roots;
  }
  /// Rewrites the graph, and expects that the roots keep their values within `tolerance` of their
  /// largest element.
  RewrittenGraph rewritten(const std::vector<Value>& roots, double tolerance,
                           const RewriteOptions& options = {}) {
    const std::unique_ptr<Device> device = make_device({}, clock_);
    KernelConstantEvaluator evaluator(*device);
    RewrittenGraph result = rewrite(graph_, roots, true, options, &evaluator);
    const std::vector<Tensor> before = evaluate_graph(roots, feeds(), *device);
    const std::vector<Tensor> after = evaluate_graph(result.roots, feeds(), *device);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      expect_near(before[i], after[i], tolerance, roots[i].name());
    }
    return result;
  }
  static void expect_near(const Tensor& a, const Tensor& b, double tolerance,
                          const std::string& name) {
    ASSERT_EQ(a.shape(), b.shape());
    if (a.dtype() != DType::kFloat32) {
      EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << name;
      return;
    }
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < a.data<float>().size(); ++i) {
      const double x = a.data<float>()[i], y = b.data<float>()[i];
      largest = std::max(largest, std::abs(x));
      difference = std::max(difference, std::abs(x - y));
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE(difference, tolerance * largest) << name;
  }
  static std::size_t count(const Graph& graph, std::string_view op) {
    std::size_t found = 0;
    for (const auto& node : graph.nodes()) found += node->op().name == op ? 1 : 0;
    return found;
  }

  RealClock clock_;
  Graph graph_;
};

TEST_F(RewriteValuesTest, OfAMultiLayerPerceptronWithItsGradients) {
  const Value x = graph_.input("x", {5, 7}), y = graph_.input("y", {5, 3});
  const Value h = relu(dense(x, 11, "layer1"));
  const Value loss = mean_squared_error(tanh(dense(h, 3, "layer2")), y);
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Adam{}, {.clip_norm = 1})), 1e-6);
  EXPECT_EQ(count(*result.graph, "bias_activation"), 2U);
  EXPECT_EQ(count(*result.graph, "bias"), 0U);
  EXPECT_LT(result.graph->nodes().size(), graph_.nodes().size());
}

TEST_F(RewriteValuesTest, OfALanguageModelWithItsGradients) {
  constexpr std::int64_t kSteps = 3, kBatch = 2, kHidden = 4, kWords = 5;
  const Value ids = graph_.input("ids", {kSteps, kBatch}, DType::kInt32);
  const Value labels = graph_.input("labels", {kSteps * kBatch}, DType::kInt32);
  const Value table = graph_.variable("embedding", {kWords, kHidden});
  const Value h = graph_.local("h", {kBatch, kHidden}), c = graph_.local("c", {kBatch, kHidden});
  const LstmOutput cells =
      lstm(dropout(embedding_lookup(table, ids), 0.5), h, c,
           graph_.variable("w", {2 * kHidden, 4 * kHidden}), graph_.variable("b", {4 * kHidden}));
  graph_.assign(h, cells.h);
  graph_.assign(c, cells.c);
  const Value rows = reshape(cells.outputs, {kSteps * kBatch, kHidden});
  const Value costs = softmax_cross_entropy(dense(rows, kWords, "softmax"), labels);
  const Value loss = scale(reduce_sum(costs), 1.0 / double(kBatch));
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Sgd{1}, {.clip_norm = 5})), 1e-6);
  EXPECT_EQ(result.graph->assignments().size(), 2U);
  EXPECT_EQ(count(*result.graph, "dropout"), 2U);
  EXPECT_EQ(count(*result.graph, "softmax_cross_entropy_with_grad"), 1U);
  for (const char* op : {"softmax_cross_entropy", "softmax_cross_entropy_grad", "bias"}) {
    EXPECT_EQ(count(*result.graph, op), 0U) << op;
  }
}

TEST_F(RewriteValuesTest, ALossWithoutBiasIsFusedToo) {
  const Value labels = graph_.input("labels", {3}, DType::kInt32);
  const Value logits = matmul(graph_.input("x", {3, 4}), graph_.variable("w", {4, 5}));
  const Value loss = reduce_sum(softmax_cross_entropy(logits, labels));
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Sgd{1})), 1e-6);
  EXPECT_EQ(count(*result.graph, "softmax_cross_entropy_with_grad"), 1U);
}

TEST_F(RewriteValuesTest, ALossStaysWhereItsLogitsOrTheirGradientAreNeededOtherwise) {
  const Value labels = graph_.input("labels", {3}, DType::kInt32);
  const Value logits = matmul(graph_.input("x", {3, 4}), graph_.variable("w", {4, 5}));
  const Value losses = softmax_cross_entropy(logits, labels);
  std::vector<Value> roots = roots_of(minimize(reduce_sum(losses), Sgd{1}));
  roots.push_back(logits);
  const RewrittenGraph read = rewritten(roots, 1e-6);
  EXPECT_EQ(count(*read.graph, "softmax_cross_entropy_grad"), 1U);
  const Value weighted = reduce_sum(losses * graph_.input("weights", {3}));
  const RewrittenGraph scaled = rewritten(roots_of(minimize(weighted, Sgd{1})), 1e-6);
  EXPECT_EQ(count(*scaled.graph, "softmax_cross_entropy_grad"), 1U);
}

TEST_F(RewriteValuesTest, ProductsInBfloat16ReadEachValueCastOnce) {
  const Value x = graph_.input("x", {5, 7}), y = graph_.input("y", {5, 3});
  const Value h = relu(dense(x, 11, "layer1"));
  const Value loss = mean_squared_error(tanh(dense(h, 3, "layer2")), y);
  RewriteOptions options;
  options.bfloat16_products = true;
  const std::vector<Value> roots = roots_of(minimize(loss, Adam{}, {.clip_norm = 1}));
  const RewrittenGraph result = rewritten(roots, 0.02, options);
  EXPECT_EQ(count(*result.graph, "matmul"), 0U);
  // Two forward products, two gradients by the weights, and one by h.
  EXPECT_EQ(count(*result.graph, "matmul_bfloat16"), 5U);
  // Casts of x, h, two weights, and the gradients of two products.
  EXPECT_EQ(count(*result.graph, "cast"), 6U);
  EXPECT_EQ(count(*result.graph, "bias_activation"), 2U);
  for (const Value& root : result.roots) EXPECT_EQ(root.dtype(), DType::kFloat32);
}

TEST_F(RewriteValuesTest, BiasesBecomePartsOfProductsWhereTheDeviceAddsThem) {
  const Value x = graph_.input("x", {5, 7}), y = graph_.input("y", {5, 3});
  const Value h = relu(dense(x, 11, "layer1"));
  const Value loss = mean_squared_error(dense(h, 3, "layer2"), y);
  const std::vector<Value> roots = roots_of(minimize(loss, Sgd{1}));
  EXPECT_EQ(count(*rewritten(roots, 1e-6).graph, "matmul_bias"), 0U);
  RewriteOptions options;
  options.biased_products = true;
  const RewrittenGraph result = rewritten(roots, 1e-6, options);
  EXPECT_EQ(count(*result.graph, "matmul_bias"), 2U);
  EXPECT_EQ(count(*result.graph, "matmul"), 3U) << "the gradients";
  EXPECT_EQ(count(*result.graph, "bias") + count(*result.graph, "bias_activation"), 0U);
  options.bfloat16_products = true;
  EXPECT_EQ(count(*rewritten(roots, 0.02, options).graph, "matmul_bias"), 2U);
}

TEST_F(RewriteValuesTest, ABiasStaysWhereTheProductIsNeededOtherwise) {
  const Value x = graph_.input("x", {5, 7}), b = graph_.variable("b", {3});
  const Value product = matmul(x, graph_.variable("w", {7, 3}));
  RewriteOptions options;
  options.biased_products = true;
  EXPECT_EQ(count(*rewritten({bias(product, b), product}, 0, options).graph, "matmul_bias"), 0U);
  EXPECT_EQ(count(*rewritten({tanh(bias(product, b))}, 0, options).graph, "matmul_bias"), 0U);
}

TEST_F(RewriteValuesTest, WidenedProductsReadTheRoundedValuesInFloat32) {
  const Value x = graph_.input("x", {5, 7});
  const Value h = relu(matmul(x, graph_.variable("w1", {7, 11})));
  const Value y = matmul(h, graph_.variable("w2", {11, 3}));
  RewriteOptions options;
  options.bfloat16_products = options.widened_products = true;
  const RewrittenGraph result = rewritten({y}, 0.02, options);
  EXPECT_EQ(count(*result.graph, "matmul_bfloat16"), 0U);
  EXPECT_EQ(count(*result.graph, "matmul"), 2U);
  EXPECT_EQ(count(*result.graph, "cast"), 8U);
}

TEST_F(RewriteValuesTest, ProductsOfAnLstmInBfloat16) {
  const Value x = graph_.input("x", {3, 2, 4}), zero = graph_.input("h", {2, 5});
  const LstmOutput cells = lstm(x, zero, graph_.input("c", {2, 5}), graph_.variable("w", {9, 20}),
                                graph_.variable("b", {20}));
  RewriteOptions options;
  options.bfloat16_products = true;
  const auto roots = roots_of(minimize(reduce_sum(square(cells.outputs)), Sgd{1}));
  const RewrittenGraph result = rewritten(roots, 0.02, options);
  for (const auto& node : result.graph->nodes()) {
    if (!node->op().name.starts_with("lstm")) continue;
    EXPECT_TRUE(node->attributes().get<bool>("bfloat16_products")) << node->op().name;
  }
}

TEST_F(RewriteValuesTest, ProductsOfConvolutionsInBfloat16) {
  const Value x = graph_.input("x", {3, 3, 8, 8});
  const Value y = conv2d(x, graph_.variable("w1", {8, 3, 3, 3}), graph_.variable("b", {8}));
  const Value z = conv2d(y, graph_.variable("w2", {4, 8, 3, 3}), {.strides = {2, 2}});
  RewriteOptions options;
  options.bfloat16_products = true;
  const auto roots = roots_of(minimize(reduce_sum(square(z)), Sgd{1}));
  const RewrittenGraph result = rewritten(roots, 0.02, options);
  int convolutions = 0;
  for (const auto& node : result.graph->nodes()) {
    if (!node->op().name.starts_with("conv2d")) continue;
    ++convolutions;
    EXPECT_TRUE(node->attributes().get<bool>("bfloat16_products")) << node->op().name;
  }
  EXPECT_EQ(convolutions, 5);  // two forward convolutions, two gradients by the weights, one by y
}

// A residual unit with a strided shortcut, between a convolution and a mean.
TEST_F(RewriteValuesTest, OfAResidualNetworkWithItsGradients) {
  const Value x = graph_.input("x", {4, 3, 8, 8});
  const auto weights = [&](const char* name, std::int64_t in, std::int64_t out) {
    return graph_.variable(name, {out, in, 3, 3});
  };
  const Value before = conv2d(x, weights("w0", 3, 4));
  const Value a = leaky_relu(batch_norm(before, "norm1"), 0.1);
  const Value b = conv2d(a, weights("w1", 4, 6), {.strides = {2, 2}});
  const Value c = relu(batch_norm(b, "norm2"));
  const Value shortcut = pad(avg_pool2d(a), {0, 1, 0, 0}, {0, 1, 0, 0});
  const Value sum = conv2d(c, weights("w2", 6, 6)) + shortcut;
  const Value logits = dense(reduce_mean(sum, {2, 3}), 5, "dense");
  const Value labels = graph_.input("labels", {4}, DType::kInt32);
  const Value loss = reduce_mean(softmax_cross_entropy(logits, labels));
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Sgd{1})), 2e-6);
  EXPECT_EQ(count_reorders(*result.graph), 1);  // reorders x
  EXPECT_EQ(count(*result.graph, "batch_norm_activation"), 2U);
  EXPECT_EQ(count(*result.graph, "batch_norm_activation_grad"), 2U);
  for (const char* op : {"batch_norm", "batch_norm_grad", "relu", "leaky_relu", "relu_grad"}) {
    EXPECT_EQ(count(*result.graph, op), 0U) << op;
  }
}

TEST_F(RewriteValuesTest, OfAConvolutionalNetworkWithItsGradients) {
  const Value x = graph_.input("x", {3, 3, 8, 8});
  const Value y = relu(conv2d(x, graph_.variable("w", {8, 3, 5, 5}), graph_.variable("b", {8})));
  const Value pooled = local_response_norm(max_pool2d(y), {.radius = 2, .alpha = 0.5});
  const Value h = dense(reshape(pooled, {3, -1}), 4, "dense");
  const Value loss = reduce_mean(square(h));
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Sgd{1})), 2e-6);
  EXPECT_EQ(count_reorders(*result.graph), 3);  // reorders x, the input of the dense layer, and
                                                // the gradient of that input
  EXPECT_EQ(count(*result.graph, "relu_max_pool2d"), 1U);
  for (const char* op : {"conv2d_activation", "max_pool2d", "relu", "relu_grad"}) {
    EXPECT_EQ(count(*result.graph, op), 0U) << op;
  }
  RewriteOptions options;
  options.channels_last = false;
  EXPECT_EQ(count_reorders(*rewritten(roots_of(minimize(loss, Sgd{1})), 2e-6, options).graph), 0);
}

TEST_F(RewriteValuesTest, AReluStaysBeforeAMaxPoolWhereItIsReadOtherwise) {
  const Value x = graph_.input("x", {2, 3, 8, 8});
  const Value y = relu(conv2d(x, graph_.variable("w", {4, 3, 3, 3})));
  const Value loss = reduce_sum(max_pool2d(y)) + reduce_sum(square(y));
  const RewrittenGraph result = rewritten(roots_of(minimize(loss, Sgd{1})), 2e-6);
  EXPECT_EQ(count(*result.graph, "relu_max_pool2d"), 0U);
  EXPECT_EQ(count(*result.graph, "max_pool2d"), 1U);
  const Value wanted = relu(graph_.input("y", {2, 3, 4, 4}));
  const RewrittenGraph both = rewritten({wanted, max_pool2d(wanted)}, 0);
  EXPECT_EQ(count(*both.graph, "relu"), 1U);
  const Value large = relu(graph_.input("z", {1, 2, 16, 16}));
  const Value whole = max_pool2d(large, {.size = {16, 16}, .strides = {16, 16}});
  EXPECT_EQ(count(*rewritten({whole}, 0).graph, "max_pool2d"), 1U);
}

TEST_F(RewriteValuesTest, BatchNormIsFoldedIntoTheConvolutionBeforeIt) {
  const Value x = graph_.input("x", {4, 3, 8, 8});
  const auto positive = [&](const Value& value) { return square(value) + 0.1; };
  const auto channels = [&](const char* name) { return graph_.variable(name, {6}); };
  const auto norm = [&](const Value& y) {
    return batch_norm_inference(y, channels("gains"), channels("offsets"), channels("means"),
                                positive(channels("variances")));
  };
  const Value weights = graph_.variable("w", {6, 3, 3, 3});
  const Value plain = relu(norm(conv2d(x, weights)));
  const Value biased = norm(conv2d(x, weights, channels("biases")));
  const Value alone = leaky_relu(norm(graph_.input("y", {2, 6, 3, 3})), 0.1);
  const RewrittenGraph result = rewritten({plain, biased, alone}, 1e-6);
  EXPECT_EQ(count(*result.graph, "batch_norm_inference_activation"), 1U);
  EXPECT_EQ(count(*result.graph, "batch_norm_inference"), 0U);
  EXPECT_EQ(count(*result.graph, "conv2d"), 1U);
  EXPECT_EQ(count(*result.graph, "conv2d_activation"), 1U);
}

TEST_F(RewriteValuesTest, ImagesThatAreWantedKeepTheirLayout) {
  const Value x = graph_.input("x", {2, 3, 6, 5});
  const Value y = conv2d(x, graph_.variable("w", {4, 3, 3, 3}));
  const Value z = leaky_relu(batch_norm(y, "norm"), 0.1);
  const Value parts = slice(z + square(y), {0, 1, 0, 0}, {2, 2, 6, 3});
  const Value sums = reduce_sum(parts, {1}), rows = reduce_mean(parts, {3});
  rewritten({y, z, parts, sums, rows, softmax(parts)}, 2e-6);
}

TEST_F(RewriteValuesTest, OfChainsOfEveryElementwiseOp) {
  const Value x = graph_.input("x", {3, 5}), y = graph_.input("y", {3, 5});
  const Value s = graph_.input("s", {1});
  const Value positive = exp(scale(x, 0.5));
  const Value chain = sqrt(positive + square(y)) - log(square(x) * s * s + exp(y));
  const Value activations = sigmoid(leaky_relu(x, 0.1)) * tanh(y) / relu(square(y) + exp(x));
  const RewrittenGraph result = rewritten({chain, activations}, 1e-6);
  EXPECT_GE(count(*result.graph, "fused_elementwise"), 2U);
  EXPECT_EQ(count(*result.graph, "tanh"), 0U);
}

TEST_F(RewriteValuesTest, OfFoldedConstants) {
  const Value x = graph_.input("x", {2, 2});
  const Value one = graph_.constant(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Value folded = reshape(transpose(exp(one) + one), {2, 2});
  const RewrittenGraph result = rewritten({matmul(x, folded)}, 0);
  EXPECT_EQ(result.graph->nodes().size(), 3U);
}

}  // namespace
}  // namespace paceline
