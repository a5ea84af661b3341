// Tests of the recipe `fast` of cifar10.
#include "models/airbench_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "models/cifar10.h"
#include "models/cifar10_recipe.h"
#include "models/testing/standardised_images.h"
#include "models/testing/variables.h"
#include "models/whitening.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/session.h"

namespace paceline::models {
namespace {

using ::testing::HasSubstr;

AirbenchConfig small() { return {.batch = 40, .classes = 4, .widths = {24, 32, 32}, .steps = 30}; }

TEST(Airbench, HasThePublishedSize) {
  Graph graph;
  build_airbench(graph, {.batch = 2});
  std::map<std::string, std::int64_t> sizes;
  for (const auto& node : graph.nodes()) {
    if (node->op().name == "variable") sizes[node->name()] = node->outputs()[0].shape.elements();
  }
  EXPECT_EQ(sizes.at("whiten/w"), 24 * 3 * 2 * 2);
  EXPECT_EQ(sizes.at("group1/conv1/w"), 64 * 24 * 9);
  EXPECT_EQ(sizes.at("group3/conv2/w"), 256 * 256 * 9);
  EXPECT_EQ(sizes.at("head/w"), 2560);
  EXPECT_FALSE(sizes.contains("group1/norm1/gains"));
}

TEST(Airbench, FirstFiltersHandOnTheirChannel) {
  Graph graph;
  const AirbenchGraph airbench = build_airbench(graph, small());
  RunOptions run;
  run.quiet = true;
  Session session(airbench_minimize(airbench, small()), {}, run);
  const Tensor weights = session.variables().get("group2/conv1/w");  // (32,24,3,3)
  for (std::int64_t i = 0; i < 24 * 24 * 9; ++i) {
    const bool centre = i % 9 == 4 && i / 9 % 24 == i / 9 / 24;
    EXPECT_EQ(weights.data<float>()[std::size_t(i)], centre ? 1 : 0) << i;
  }
  const auto others = weights.data<float>().subspan(24 * 24 * 9);
  const auto [least, most] = std::ranges::minmax(others);
  const float bound = float(1 / std::sqrt(24 * 9.0));
  EXPECT_GE(least, -bound);
  EXPECT_LT(most, bound);
  EXPECT_LT(least, -0.9f * bound);
}

double norm_of(const Tensor& tensor) {
  double squares = 0;
  for (const float value : tensor.data<float>()) squares += double(value) * value;
  return std::sqrt(squares);
}

TEST(Airbench, LearnsItsImages) {
  AirbenchConfig config = small();
  const LabelledImages data = standardised_images(config.batch, kAirbenchPixels, 4, 1);
  config.whitening = whitening_filters(data.images);
  Graph graph, evaluation;
  const AirbenchGraph airbench = build_airbench(graph, config);
  const AirbenchGraph views = build_airbench_views(evaluation, config);
  RunOptions run;
  run.quiet = true;
  run.steps = config.steps;
  Session session(airbench_minimize(airbench, config), {}, run);
  session.share(evaluation);
  double first = 0;
  while (const auto step = session.step([&](Feed& feed) {
    feed.set(airbench.images, data.images).set(airbench.labels, data.labels);
  })) {
    if (first == 0) first = step->loss;
  }
  EXPECT_NEAR(first, std::log(4.0), 0.2);
  EXPECT_LT(session.last_step().loss, 0.8) << "0.57 is the entropy of labels smoothed by 0.2";
  EXPECT_TRUE(std::ranges::equal(session.variables().get("whiten/w").data<float>(),
                                 config.whitening.data<float>()))
      << "the filters stay as they are";
  EXPECT_NEAR(norm_of(session.variables().get("group3/conv2/w")), std::sqrt(32.0), 0.5);
  const Value fetches[] = {views.logits};
  const Tensor logits = session.evaluate(
      evaluation, fetches, [&](Feed& feed) { feed.set(views.images, data.images); })[0];
  int right = 0;
  for (std::int64_t i = 0; i < config.batch; ++i) {
    const auto its = logits.data<float>().subspan(std::size_t(4 * i), 4);
    right += std::ranges::max_element(its) - its.begin() == i % 4 ? 1 : 0;
  }
  EXPECT_GE(right, 36);
}

std::string refusal_of(const std::map<std::string, std::string>& set) {
  try {
    cifar10_recipe(cifar10_model().settings(set), {}, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(FastRecipe, RunsEightEpochs) {
  EXPECT_EQ(fast_steps(50'000, 2000, {}), 200);
  EXPECT_EQ(fast_steps(3, 2000, {}), 1);
  Cluster towers;
  towers.towers = 2;
  EXPECT_EQ(fast_steps(5000, 500, towers), 40) << "a step takes the batches of both";
  Cluster cluster;
  cluster.spec.workers = {"a:1", "b:1"};
  EXPECT_EQ(fast_steps(5000, 500, cluster), 80) << "each worker's step is a global one";
  cluster.strategy.name = "sync";
  EXPECT_EQ(fast_steps(5000, 500, cluster), 40);
}

TEST(FastRecipe, RefusesSettingsOfTheOther) {
  EXPECT_THAT(refusal_of({{"recipe", "fast"}, {"learning_rate", "0.1"}}),
              HasSubstr("--set learning_rate: --recipe fast has its own"));
  EXPECT_EQ(refusal_of({{"recipe", "fast"}, {"batch", "100"}}), "nothing was refused");
}

}  // namespace
}  // namespace paceline::models
