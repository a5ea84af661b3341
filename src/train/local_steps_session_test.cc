// Sessions that make local steps: when their losses equal those of sync, and how they save and
// resume.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <future>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoints.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "params/strategy/strategies.h"
#include "train/testing/averaging_strategy.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

constexpr int kPartRows = 6, kFeatures = 8;

struct LossesAndStep : Hook {
  explicit LossesAndStep(std::vector<double>& to, std::int64_t& step_in)
      : losses(to), step(step_in) {}
  bool after_step(Session&, const StepResult& result) override {
    losses.push_back(result.loss);
    step = result.global_step;
    return true;
  }
  std::vector<double>& losses;
  std::int64_t& step;
};

struct Trained {
  std::vector<double> losses;
  std::int64_t global_step = 0;
};

/// Trains a multilayer perceptron on a worker's own rows. Calls `feeds` before each step, with the
/// step's number. If there is `made`, makes run.steps steps one by one, calls `made`, and then runs
/// to the end.
Trained train_worker(const Cluster& cluster, const Rule& rule, const RunOptions& run,
                     const std::function<void(std::int64_t)>& feeds = {},
                     const std::function<void(Session&)>& made = {}) {
  Graph graph;
  const Value x = graph.input("x", {kPartRows, kFeatures}), y = graph.input("y", x.shape());
  Value h = relu(dense(x, 32, "layer1"));
  h = relu(dense(h, 32, "layer2"));
  Session session(minimize(mean_squared_error(dense(h, kFeatures, "layer3"), y), rule), cluster,
                  run);
  Trained trained;
  session.add(LossesAndStep(trained.losses, trained.global_step));
  const auto fill = [&](Feed& feed) {
    if (feeds) feeds(feed.step());
    for (const Value& input : {x, y}) {
      const auto values = feed.data<float>(input);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double element = double(i) + double(std::size_t(cluster.task.index) * values.size());
        values[i] = float(std::sin(element * element + 3.0 * double(feed.step() % 20)));
      }
    }
  };
  for (std::int64_t step = 0; made && step < *run.steps; ++step) session.step(fill);
  if (made) made(session);
  session.run(fill);
  return trained;
}

Cluster with_local_steps(Cluster cluster, int local_steps) {
  cluster.strategy.name = "local_sgd";
  cluster.strategy.local_steps = local_steps;
  return cluster;
}

std::vector<Trained> train_two(const Served& served, const Rule& rule, const RunOptions& run,
                               const std::function<Cluster(Cluster)>& how) {
  std::vector<std::future<Trained>> workers;
  workers.reserve(2);
  for (int worker = 0; worker < 2; ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker] {
      return train_worker(how(served.cluster(worker)), rule, run);
    }));
  }
  std::vector<Trained> trained;
  trained.reserve(workers.size());
  for (auto& worker : workers) trained.push_back(worker.get());
  return trained;
}

TEST(LocalStepsSession, OneStepAndPlainAveragingGiveTheLossesOfSync) {
  const Rule rule = Sgd{.learning_rate = 0.1f};
  const Served first(2), second(2);
  const auto sync = train_two(first, rule, quiet(100), [](Cluster cluster) {
    cluster.strategy.name = "sync";
    return cluster;
  });
  const auto local = train_two(second, rule, quiet(100), [](Cluster cluster) {
    cluster.strategy.outer_rate = 1;
    cluster.strategy.outer_momentum = 0;
    return with_local_steps(cluster, 1);
  });
  for (std::size_t worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(local[worker].global_step, 100);
    ASSERT_EQ(local[worker].losses.size(), 100U);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_NEAR(local[worker].losses[i], sync[worker].losses[i], 1e-5) << worker << " " << i;
    }
  }
}

TEST(OwnStrategy, IsTrainedByItsLineOfTheTable) {
  const AddedStrategy added(kAveraging);
  const Rule rule = Sgd{.learning_rate = 0.1f};
  const Served first(2), second(2);
  const auto own = train_two(first, rule, quiet(40), [](Cluster cluster) {
    cluster.strategy = {.name = "averaging", .local_steps = 4};
    return cluster;
  });
  const auto local = train_two(second, rule, quiet(40), [](Cluster cluster) {
    cluster.strategy.outer_rate = 1;
    cluster.strategy.outer_momentum = 0;
    return with_local_steps(cluster, 4);
  });
  for (std::size_t worker = 0; worker < 2; ++worker) {
    ASSERT_EQ(own[worker].losses.size(), 40U);
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_NEAR(own[worker].losses[i], local[worker].losses[i], 1e-5) << worker << " " << i;
    }
  }
}

// A round has 10 local steps, so 95 steps may become 100. Fragments are exchanged while workers go
// on.
TEST(LocalStepsSession, GlobalStepsAreLocalStepsAndTheLossFalls) {
  const Rule rule = Adam{.learning_rate = 3e-3f};
  for (const int fragments : {1, 3}) {
    const Served served(2);
    const auto trained = train_two(served, rule, quiet(95), [&](Cluster cluster) {
      cluster.strategy.outer_fragments = fragments;
      return with_local_steps(cluster, 10);
    });
    for (const Trained& worker : trained) {
      EXPECT_GE(worker.global_step, 95);
      EXPECT_LE(worker.global_step, 100);
      EXPECT_EQ(std::int64_t(worker.losses.size()), worker.global_step);
      EXPECT_LT(worker.losses.back(), 0.8 * worker.losses.front());
    }
  }
}

TEST(LocalStepsSession, OfOneWorkerWithoutRoundsIsOneProcess) {
  const Rule rule = Sgd{.learning_rate = 0.1f};
  const Served served;
  const Trained alone = train_worker({}, rule, quiet(50));
  Cluster cluster = with_local_steps(served.cluster(), 1);
  cluster.strategy.outer_async = true;
  cluster.strategy.outer_rate = 1;
  cluster.strategy.outer_momentum = 0;
  const Trained local = train_worker(cluster, rule, quiet(50));
  ASSERT_EQ(local.losses.size(), alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(local.losses[i], alone.losses[i], 1e-5) << i;
  }
}

// The faster worker makes more of the steps.
TEST(LocalStepsSession, WithoutRoundsAllStepsTogetherAreCounted) {
  const Rule rule = Adam{.learning_rate = 3e-3f};
  for (const int fragments : {1, 3}) {
    const Served served(2);
    const auto trained = train_two(served, rule, quiet(200), [&](Cluster cluster) {
      cluster.strategy.outer_fragments = fragments;
      cluster.strategy.outer_async = true;
      return with_local_steps(cluster, 10);
    });
    std::int64_t made = 0;
    for (const Trained& worker : trained) {
      if (worker.losses.empty()) continue;  // joined after the others had made all steps
      EXPECT_GE(worker.global_step, 200);
      made += std::int64_t(worker.losses.size());
    }
    EXPECT_GE(made, 200 - 2 * 10);
    EXPECT_LE(made, 200 + 4 * 10) << "each may be in an exchange when the last one ends";
    const Trained& busier = trained[trained[0].losses.size() < trained[1].losses.size() ? 1 : 0];
    EXPECT_LT(busier.losses.back(), 0.8 * busier.losses.front());
  }
}

// The chief has made its last step and the other worker has not, so the last round does not count
// yet. A checkpoint that is saved now is not that of the last step.
TEST(LocalStepsSession, TheLastCheckpointIsOfTheLastStepWhateverWasSavedBeforeItsRoundWasClosed) {
  const Served served(2);
  const TemporaryFolder folder;
  RunOptions run = quiet(20);
  run.out = folder.path();
  run.summary_every = {};
  run.save_every = Interval();
  std::promise<void> saved;
  const auto how = [&](int worker) {
    Cluster cluster = with_local_steps(served.cluster(worker), 10);
    cluster.strategy.outer_fragments = 2;
    return cluster;
  };
  auto other = std::async(std::launch::async, [&] {
    train_worker(how(1), Sgd{.learning_rate = 0.1f}, run, [&](std::int64_t step) {
      if (step == 19) saved.get_future().wait();
    });
  });
  train_worker(how(0), Sgd{.learning_rate = 0.1f}, run, {}, [&](Session& session) {
    session.save();
    saved.set_value();
  });
  other.get();
  const Checkpoints checkpoints(folder.path("checkpoints"));
  const auto all = checkpoints.list(WholeCheck::kChecksums);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].step, 20);
  EXPECT_LT(all[1].step, 20) << "of values without the last round";
}

// Checkpoints are saved between two rounds. They have the values after the last round, and Adam's
// slots of the worker.
class LocalStepsResumed : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Outer, LocalStepsResumed, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "async" : "sync"; });

TEST_P(LocalStepsResumed, GoesOnAsIfItHadNotEnded) {
  const Rule rule = Adam{.learning_rate = 3e-3f};
  const auto train = [&](const RunOptions& run) {
    const Served served;
    Cluster cluster = with_local_steps(served.cluster(), 4);
    cluster.strategy.outer_async = GetParam();
    return train_worker(cluster, rule, run);
  };
  const Trained unbroken = train(quiet(40));
  const TemporaryFolder folder;
  RunOptions run = quiet(20);
  run.out = folder.path();
  run.summary_every = {};
  EXPECT_EQ(train(run).global_step, 20);
  run.resume = true;
  run.steps = 40;
  const Trained resumed = train(run);
  EXPECT_EQ(resumed.global_step, 40);
  EXPECT_EQ(resumed.losses, std::vector(unbroken.losses.begin() + 20, unbroken.losses.end()));
}

}  // namespace
}  // namespace paceline
