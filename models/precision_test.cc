// Tests that training with products in bfloat16 has almost the losses of training in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "models/mlp.h"
#include "models/ptb.h"
#include "models/ptb_graph.h"
#include "models/resnet_graph.h"
#include "paceline/minimize.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

using MakeTraining = std::function<Training(Graph&)>;
using FeedStep = std::function<void(const Graph&, Feed&)>;

/// Returns the loss of each step of a new training.
std::vector<double> losses(DType precision, const MakeTraining& make, const FeedStep& feed,
                           int steps) {
  Graph graph;
  Cluster cluster;
  cluster.train.precision = precision;
  RunOptions run;
  run.quiet = true;
  Session session(make(graph), cluster, run);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    bool fed = false;
    session.run([&](Feed& f) {
      if (fed) return f.stop();
      feed(graph, f);
      fed = true;
    });
    losses.push_back(session.last_step().loss);
  }
  return losses;
}

void expect_close(const std::vector<double>& rounded, const std::vector<double>& exact,
                  double tolerance) {
  ASSERT_EQ(rounded.size(), exact.size());
  bool differs = false;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(rounded[i], exact[i], tolerance * exact[i]) << "step " << i;
    differs = differs || rounded[i] != exact[i];
  }
  EXPECT_TRUE(differs) << "nothing was rounded";
}

TEST(Precision, TheLossOfMlpInBfloat16IsThatOfFloat32) {
  const MlpConfig config{
      .batch = 32, .features = 16, .hidden = 64, .rule = {.learning_rate = 1e-3f}};
  const MakeTraining make = [&](Graph& graph) {
    return minimize(build_mlp(graph, config).loss, config.rule);
  };
  const FeedStep feed = [](const Graph& graph, Feed& f) {
    f.normal(graph.find("x"));
    const auto x = f.data<float>(graph.find("x")), y = f.data<float>(graph.find("y"));
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::abs(x[i]);
  };
  const std::vector<double> exact = losses(DType::kFloat32, make, feed, 60);
  expect_close(losses(DType::kBFloat16, make, feed, 60), exact, 0.005);
  EXPECT_LT(exact.back(), 0.8 * exact.front());
}

TEST(Precision, TheLossOfPtbInBfloat16IsThatOfFloat32) {
  PtbConfig config = ptb_config(ptb_model().settings({{"size", "test"}}));
  config.hidden = 24;
  config.unroll = 5;
  config.vocabulary = 40;
  const MakeTraining make = [&](Graph& graph) {
    const PtbGraph ptb = build_ptb(graph, config, config.batch, config.unroll, true);
    graph.named("inputs", ptb.inputs);
    graph.named("targets", ptb.targets);
    return minimize(ptb.cost, Sgd{1}, {.clip_norm = float(config.max_grad_norm)});
  };
  // Each target word is a function of its input word, so that the model can learn.
  const FeedStep feed = [](const Graph& graph, Feed& f) {
    const auto inputs = f.data<std::int32_t>(graph.find("inputs"));
    const auto targets = f.data<std::int32_t>(graph.find("targets"));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = std::int32_t((i * 7 + std::size_t(f.step())) % 40);
      targets[i] = (inputs[i] * 3 + 1) % 40;
    }
  };
  const std::vector<double> exact = losses(DType::kFloat32, make, feed, 60);
  expect_close(losses(DType::kBFloat16, make, feed, 60), exact, 0.01);
  EXPECT_LT(exact.back(), 0.8 * exact.front());
}

TEST(Precision, TheLossOfResnetInBfloat16IsThatOfFloat32) {
  constexpr std::int64_t kBatch = 16;
  const MakeTraining make = [](Graph& graph) {
    const ResnetGraph resnet = build_resnet(graph, 1, kBatch, true, 4);
    return resnet_minimize(resnet, {.batch = kBatch, .units = 1, .learning_rate = 0.01});
  };
  // Images of class 0, 1 and 2 have one brighter channel each, and those of class 3 none, so that
  // the model can learn the four classes.
  const FeedStep feed = [](const Graph& graph, Feed& f) {
    f.normal(graph.find("images"));
    const auto images = f.data<float>(graph.find("images"));
    const auto labels = f.data<std::int32_t>(graph.find("labels"));
    const std::size_t pixels = images.size() / (kBatch * 3);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = std::int32_t(i % 4);
      for (std::size_t c = 0; c < 3; ++c) {
        if (std::size_t(labels[i]) != c) continue;
        for (std::size_t k = 0; k < pixels; ++k) images[(i * 3 + c) * pixels + k] += 0.5f;
      }
    }
  };
  const std::vector<double> exact = losses(DType::kFloat32, make, feed, 20);
  expect_close(losses(DType::kBFloat16, make, feed, 20), exact, 0.02);
  EXPECT_LT(exact.back(), 0.8 * exact.front());
}

}  // namespace
}  // namespace paceline::models
