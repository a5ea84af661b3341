// Tests of the image models: their sizes, first losses and learning rates, and that runs are equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cifar10_graph.h"
#include "models/resnet.h"
#include "models/testing/standardised_images.h"
#include "models/testing/variables.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

using ::testing::HasSubstr;

// Counts the multiply-adds of convolutions and products in the forward pass for one image. A
// multiply-add is two FLOPs.
double multiply_adds_of_image(const Graph& graph, std::int64_t batch) {
  double flops = 0;
  for (const auto& node : graph.nodes()) {
    const std::string& op = node->op().name;
    if (op == "conv2d" || op == "matmul") flops += node->op().cost(*node).flops;
  }
  return flops / 2 / double(batch);
}

TEST(Cifar10, HasTheReportedSizes) {
  Graph graph;
  const Cifar10Graph cifar10 = build_cifar10(graph, 4);
  EXPECT_EQ(variables_of(graph).parameters, 1'068'298);
  EXPECT_EQ(variables_of(graph).tensors, 10);
  EXPECT_EQ(cifar10.logits.shape(), (Shape{4, 10}));
  EXPECT_NEAR(multiply_adds_of_image(graph, 4) * 1e-6, 18.5, 0.1);
}

TEST(Cifar10, TheRateFallsEvery350Epochs) { EXPECT_EQ(Cifar10Config{}.rate_steps(), 136'718); }

RunOptions quiet() {
  RunOptions run;
  run.quiet = true;
  return run;
}

double first_loss(const Training& training, Value images, Value labels, std::int64_t pixels) {
  Session session(training, {}, quiet());
  const LabelledImages data = standardised_images(images.shape()[0], pixels, 10, 1);
  return session.step([&](Feed& feed) { feed.set(images, data.images).set(labels, data.labels); })
      ->loss;
}

TEST(Cifar10, TheFirstLossIsTheReported) {
  Graph graph;
  const Cifar10Graph cifar10 = build_cifar10(graph, 16);
  EXPECT_NEAR(first_loss(cifar10_minimize(cifar10, {}), cifar10.images, cifar10.labels, 24), 4.68,
              0.02);
}

TEST(Resnet, HasTheReportedSizes) {
  Graph graph;
  build_resnet(graph, ResnetConfig{}.units, 2, true);
  std::int64_t moving = 0, moving_tensors = 0;
  for (const auto& node : graph.nodes()) {
    if (node->name().find("/moving_") == std::string::npos) continue;
    moving += node->outputs()[0].shape.elements();
    ++moving_tensors;
  }
  EXPECT_EQ(ResnetConfig{}.depth(), 110);
  EXPECT_EQ(variables_of(graph).parameters - moving, 1'727'962);
  EXPECT_EQ(variables_of(graph).tensors - moving_tensors, 329);
  EXPECT_EQ(moving_tensors, 218);
  EXPECT_NEAR(multiply_adds_of_image(graph, 2) * 1e-6, 253, 0.5);
}

TEST(Resnet, WeightsDecayAndNothingElse) {
  Graph graph;
  const ResnetGraph resnet = build_resnet(graph, 1, 2, true);
  const Training training = resnet_minimize(resnet, {.units = 1});
  for (const VariableUpdate& update : training.updates) {
    const bool decays = update.variable.name().ends_with("/w");
    EXPECT_EQ(update.weight_decay, decays ? 0.0002f : 0) << update.variable.name();
  }
}

TEST(Resnet, TrainingAndEvaluationHaveTheSameVariables) {
  Graph training, evaluation;
  build_resnet(training, 2, 2, true);
  build_resnet(evaluation, 2, 100, false);
  EXPECT_EQ(variables_of(training).parameters, variables_of(evaluation).parameters);
  EXPECT_EQ(training.contributions().size(), 26u);
  EXPECT_EQ(evaluation.contributions().size(), 0u);
}

template <typename ImageGraph>
std::vector<double> losses(const Training& training, const ImageGraph& graph) {
  Cluster cluster;
  cluster.threads = 2;
  Session session(training, cluster, quiet());
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    const auto result = session.step([&](Feed& feed) {
      feed.normal(graph.images);
      std::int32_t next = 0;
      for (std::int32_t& label : feed.data<std::int32_t>(graph.labels)) label = next++ % 10;
    });
    losses.push_back(result->loss);
  }
  return losses;
}

TEST(Resnet, RunsAreEqualBitForBit) {
  Graph graph;
  const ResnetGraph resnet = build_resnet(graph, 1, 16, true);
  const Training training = resnet_minimize(resnet, {.units = 1});
  EXPECT_EQ(losses(training, resnet), losses(training, resnet));
}

TEST(Cifar10, RunsAreEqualBitForBit) {
  Graph graph;
  const Cifar10Graph cifar10 = build_cifar10(graph, 16);
  const Training training = cifar10_minimize(cifar10, {});
  EXPECT_EQ(losses(training, cifar10), losses(training, cifar10));
}

ResnetConfig config_of(const std::map<std::string, std::string>& set,
                       std::optional<std::int64_t> steps = {}) {
  return resnet_config(resnet_model().settings(set), steps);
}

std::string refusal(const std::map<std::string, std::string>& set) {
  try {
    config_of(set);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Resnet, TakesItsDepthOrItsUnits) {
  EXPECT_EQ(config_of({}).units, 18);
  EXPECT_EQ(config_of({{"depth", "32"}}).units, 5);
  EXPECT_EQ(config_of({{"units", "3"}}).depth(), 20);
  EXPECT_THAT(refusal({{"depth", "33"}}), HasSubstr("--depth 33: must be 2 more"));
  EXPECT_THAT(refusal({{"depth", "32"}, {"units", "5"}}), HasSubstr("cannot both be given"));
}

double factor_at(std::int64_t step, const ResnetConfig& config) {
  Graph graph;
  const Training training = resnet_minimize(build_resnet(graph, 1, 8, true), config);
  return training.updates.front().learning_rate.at(step);
}

TEST(Resnet, RatesFallInTheStepsOfTheReportOrInThoseOfTheRun) {
  EXPECT_EQ(factor_at(39'999, config_of({})), 1);
  EXPECT_EQ(factor_at(60'000, config_of({})), 0.01);
  const ResnetConfig cosine = config_of({{"rates", "cosine"}}, 1000);
  EXPECT_NEAR(factor_at(0, cosine), 1.0 / 50, 1e-6);
  EXPECT_NEAR(factor_at(50, cosine), 1, 1e-6);
  EXPECT_NEAR(factor_at(525, cosine), 0.5, 1e-6);
  EXPECT_NEAR(factor_at(1000, cosine), 0, 1e-6);
  EXPECT_THAT(refusal({{"rates", "cosine"}}), HasSubstr("--rates cosine needs --steps"));
}

TEST(StandardisedImages, HaveMeanZeroAndTheirVariance) {
  const LabelledImages made = standardised_images(20, 32, 10, 3);
  double sum = 0, squares = 0;
  for (const float x : made.images.data<float>()) sum += x, squares += double(x) * x;
  const double n = double(made.images.data<float>().size());
  EXPECT_NEAR(sum / n, 0, 0.05);
  EXPECT_NEAR(squares / n, 1.25, 0.1);
  EXPECT_EQ(made.labels.data<std::int32_t>()[13], 3);
}

}  // namespace
}  // namespace paceline::models
