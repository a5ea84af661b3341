// Tests of models on towers.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/cifar10_graph.h"
#include "models/mlp.h"
#include "models/ptb_data.h"
#include "paceline/data.h"
#include "paceline/session.h"
#include "paceline/zoo_data.h"

namespace paceline::models {
namespace {

// Returns a process with this number of towers: simulated devices that compute, so the number of
// cores does not limit them.
Cluster with_towers(int towers) {
  Cluster cluster;
  cluster.towers = towers;
  cluster.device = {.kind = "sim", .sim_step_ms = 0.01, .sim_compute = true};
  return cluster;
}

RunOptions quiet_run() {
  RunOptions run;
  run.quiet = true;
  return run;
}

// Returns element i of the target of example n if `target` is true, else of its input.
float element(bool target, std::int64_t n, std::int64_t i) {
  std::uint64_t state = std::uint64_t((n * 4096 + i) * 2 + (target ? 1 : 0)) * 0x9E3779B97F4A7C15u;
  state = (state ^ (state >> 31)) * 0xBF58476D1CE4E5B9u;
  return float(state >> 40) / float(1 << 24) - 0.5f;
}

// Fills the input with examples that do not depend on how they are divided into batches.
void fill(Feed& feed, Value input, bool target) {
  const std::int64_t batch = input.shape()[0], size = input.shape().elements() / batch;
  const auto values = feed.data<float>(input);
  for (std::int64_t i = 0; i < input.shape().elements(); ++i) {
    values[std::size_t(i)] = element(target, feed.step() * batch + i / size, i % size);
  }
}

std::vector<double> mlp_losses(int towers, std::int64_t batch, int steps) {
  Graph graph;
  const MlpConfig config{.batch = batch, .hidden = 256};
  const MlpGraph mlp = build_mlp(graph, config);
  Session session(minimize(mlp.loss, config.rule), with_towers(towers), quiet_run());
  std::vector<double> losses;
  losses.reserve(std::size_t(steps));
  for (int step = 0; step < steps; ++step) {
    losses.push_back(session
                         .step([&](Feed& feed) {
                           fill(feed, mlp.x, false);
                           fill(feed, mlp.y, true);
                         })
                         ->loss);
  }
  return losses;
}

TEST(TowersOfMlp, TwoOf64TrainAsOneDeviceWith128) {
  const std::vector<double> one = mlp_losses(1, 128, 60), two = mlp_losses(2, 64, 60);
  EXPECT_LT(one.back(), 0.95 * one.front());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 1e-4 * one[i]) << i;
  EXPECT_EQ(mlp_losses(2, 64, 60), two);
}

TEST(TowersOfPtb, ReadTheRowsOfOneDeviceWithTheBatchesOfAll) {
  const std::string folder = ::testing::TempDir() + "/ptb_towers";
  generate_corpus(folder, 40'007, 1);
  const PtbConfig config{.unroll = 5, .batch = 4};
  const PtbData worker = read_ptb(folder, config, 1, 2, 2);
  ASSERT_EQ(worker.train.size(), 2U);
  const PtbData one = read_ptb(folder, {.unroll = 5, .batch = 8}, 1, 2);
  std::vector<std::int32_t> inputs(20), targets(20), all_inputs(40), all_targets(40);
  for (std::size_t tower = 0; tower < 2; ++tower) {
    ASSERT_EQ(worker.train[tower].size(), one.train[0].size());
    for (const std::int64_t batch : {std::int64_t{0}, one.train[0].size() - 1}) {
      worker.train[tower].fill(batch, inputs, targets);
      one.train[0].fill(batch, all_inputs, all_targets);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::size_t time = i / 4, row = tower * 4 + i % 4;
        EXPECT_EQ(inputs[i], all_inputs[time * 8 + row]);
        EXPECT_EQ(targets[i], all_targets[time * 8 + row]);
      }
    }
  }
  std::filesystem::remove_all(folder);
}

TEST(TowersOfCifar10, TheTermsOfTheLossAddUpToTheTotal) {
  Graph graph;
  const Cifar10Graph cifar10 = build_cifar10(graph, 2);
  const std::vector<LossTerm> terms = cifar10_loss_terms(cifar10);
  ASSERT_EQ(terms.size(), 3U);
  Session session(cifar10_minimize(cifar10, {}), with_towers(2), quiet_run(),
                  {.watch = values_of(terms)});
  const auto result = session.step([&](Feed& feed) {
    feed.normal(cifar10.images);
    for (std::int32_t& label : feed.data<std::int32_t>(cifar10.labels)) {
      label = std::int32_t(feed.step());
    }
  });
  double total = 0;
  for (const LossTerm& term : terms) {
    const double value = double(session.value(term.value).item<float>());
    EXPECT_GT(value, 0) << term.name;
    total += value;
  }
  EXPECT_NEAR(total, result->loss, 1e-5);
}

}  // namespace
}  // namespace paceline::models
