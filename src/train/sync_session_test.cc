// Sessions in synchronous rounds: workers on the parts of a batch train as one on the whole batch.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <vector>

#include "base/temporary_folder.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

constexpr int kBatch = 12, kWidth = 8;

Cluster in_rounds(Cluster cluster) {
  cluster.strategy.name = "sync";
  return cluster;
}

Cluster one_process() {
  Cluster cluster;
  cluster.threads = 1;
  return cluster;
}

struct Losses : Hook {
  explicit Losses(std::vector<double>& to) : losses(to) {}
  bool after_step(Session&, const StepResult& result) override {
    losses.push_back(result.loss);
    return true;
  }
  std::vector<double>& losses;
};

/// Trains as one of `parts` workers on its rows of each batch. Returns the losses of its part.
std::vector<double> train_part(const Cluster& cluster, int part, int parts, float clip_norm,
                               const RunOptions& run) {
  const int rows = kBatch / parts;
  Graph graph;
  const Value x = graph.input("x", {rows, kWidth}), y = graph.input("y", {rows, kWidth});
  Value h = relu(dense(x, 32, "layer1"));
  h = relu(dense(h, 32, "layer2"));
  const Value loss = mean_squared_error(dense(h, kWidth, "layer3"), y);
  Session session(minimize(loss, Adam{.learning_rate = 1e-3f}, {.clip_norm = clip_norm}), cluster,
                  run);
  std::vector<double> losses;
  session.add(Losses(losses));
  session.run([&](Feed& feed) {
    for (const Value& input : {x, y}) {
      const auto values = feed.data<float>(input);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double element = double(i) + double(part * rows * kWidth);
        values[i] = float(std::sin(element * element + 3.0 * double(feed.step() % 20)));
      }
    }
  });
  return losses;
}

/// Trains all parts at once. Returns the mean of their losses, step by step.
std::vector<double> train_together(const Served& served, int parts, float clip_norm,
                                   const RunOptions& run) {
  std::vector<std::future<std::vector<double>>> workers;
  workers.reserve(std::size_t(parts));
  for (int part = 0; part < parts; ++part) {
    workers.push_back(std::async(std::launch::async, [&, part] {
      return train_part(in_rounds(served.cluster(part)), part, parts, clip_norm, run);
    }));
  }
  std::vector<double> mean;
  for (auto& worker : workers) {
    const std::vector<double> losses = worker.get();
    mean.resize(losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) mean[i] += losses[i] / parts;
  }
  return mean;
}

struct Parts {
  int parts;
  float clip_norm;
};
class SyncSession : public ::testing::TestWithParam<Parts> {};
INSTANTIATE_TEST_SUITE_P(Workers, SyncSession,
                         ::testing::Values(Parts{2, 0}, Parts{4, 0}, Parts{3, 0.1f}));

TEST_P(SyncSession, HasTheLossesOfTheWholeBatch) {
  constexpr std::int64_t kSteps = 200;
  const auto [parts, clip_norm] = GetParam();
  const std::vector<double> whole = train_part(one_process(), 0, 1, clip_norm, quiet(kSteps));
  const Served served(parts);
  const std::vector<double> together = train_together(served, parts, clip_norm, quiet(kSteps));
  ASSERT_EQ(together.size(), std::size_t(kSteps));
  EXPECT_LT(whole.back(), 0.9 * whole.front()) << "it has learned";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_NEAR(together[i], whole[i], 1e-4 * whole[i]) << "step " << i;
  }
}

// The chief saves between two rounds, and the states of the others belong to the same round.
TEST(SyncSessionSaving, GoesOnFromACheckpointAsIfItHadNotStopped) {
  const TemporaryFolder folder;
  RunOptions run = quiet(30);
  const std::vector<double> unbroken = train_together(Served(2), 2, 0, run);
  run.out = folder.path("out");
  run.steps = 20;
  train_together(Served(2), 2, 0, run);
  run.resume = true;
  run.steps = 30;
  const std::vector<double> rest = train_together(Served(2), 2, 0, run);
  ASSERT_EQ(rest.size(), 10U);
  for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], unbroken[20 + i]);
}

TEST(SyncSessionAccumulate, IsTheMeanOfAllStepsOfAllWorkers) {
  constexpr int kWindow = 2;
  const auto by_windows = [](Cluster cluster) {
    cluster.train.accumulate = kWindow;
    return cluster;
  };
  const std::vector<double> whole = train_part(by_windows(one_process()), 0, 1, 0, quiet(10));
  const Served served(2);
  std::vector<std::future<std::vector<double>>> workers;
  workers.reserve(2);
  for (int part = 0; part < 2; ++part) {
    workers.push_back(std::async(std::launch::async, [&, part] {
      return train_part(by_windows(in_rounds(served.cluster(part))), part, 2, 0, quiet(10));
    }));
  }
  const std::vector<double> first = workers[0].get(), second = workers[1].get();
  ASSERT_EQ(whole.size(), std::size_t(10 * kWindow));
  ASSERT_EQ(first.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_NEAR((first[i] + second[i]) / 2, whole[i], 1e-4 * whole[i]) << "step " << i;
  }
}

}  // namespace
}  // namespace paceline
