// Sessions with towers: training, feeding, saving and ending.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/hooks.h"
#include "paceline/op.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "run/report/report.h"
#include "train/session_inside.h"
#include "train/testing/served.h"
#include "train/testing/towers.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The losses, the final variables and the last global step of a training.
struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> variables;
  std::int64_t global_step = 0;
  bool operator==(const Outcome&) const = default;
};

void note_variables(Session& session, Outcome& outcome) {
  SessionInside(session).see_variables([&](const std::string& name, const Tensor& value) {
    const auto values = value.data<float>();
    outcome.variables[name].assign(values.begin(), values.end());
  });
}

// Fills a batch. Example n is the same for every batch size.
void fill_examples(Feed& feed, Value x, Value y) {
  const std::int64_t batch = x.shape()[0];
  for (const Value& input : {x, y}) {
    const auto values = feed.data<float>(input);
    const std::int64_t row = input.shape().elements() / batch;
    for (std::int64_t i = 0; i < std::int64_t(values.size()); ++i) {
      const std::int64_t element = feed.step() * batch * row + i;
      values[std::size_t(i)] =
          to_unit_float(philox(input == x ? 1 : 2, std::uint64_t(element), 0)[0]) - 0.5f;
    }
  }
}

Outcome train_net(const Cluster& cluster, std::int64_t batch, int steps, float keep = 1,
                  float clip_norm = 0) {
  Graph graph;
  const Value x = graph.input("x", {batch, 6}), y = graph.input("y", {batch, 3});
  Value h = relu(dense(x, 16, "layer1"));
  if (keep < 1) h = dropout(h, keep);
  const Value loss = mean_squared_error(dense(h, 3, "layer2"), y);
  Session session(
      minimize(loss, Adam{0.01f}, {.clip_norm = clip_norm, .learning_rate = {}, .groups = {}}),
      cluster, quiet());
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    const auto result = session.step([&](Feed& feed) { fill_examples(feed, x, y); });
    outcome.losses.push_back(result->loss);
  }
  note_variables(session, outcome);
  outcome.global_step = session.last_step().global_step;
  return outcome;
}

TEST(TowersSession, TwoTowersOf64TrainAsOneDeviceWith128) {
  for (const float clip_norm : {0.0f, 0.05f}) {
    const Outcome one = train_net(with_towers(1), 128, 60, 1, clip_norm);
    const Outcome two = train_net(with_towers(2), 64, 60, 1, clip_norm);
    ASSERT_LT(one.losses.back(), 0.9 * one.losses.front());
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(two.losses[i], one.losses[i], 1e-4 * one.losses[i]) << i;
    }
    for (const auto& [name, values] : one.variables) {
      const std::vector<float>& others = two.variables.at(name);
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        difference += std::pow(double(values[i]) - double(others[i]), 2);
        norm += std::pow(double(values[i]), 2);
      }
      EXPECT_LE(std::sqrt(difference / norm), 1e-4) << name;
    }
  }
}

TEST(TowersSession, RunsAreBitEqual) {
  const Outcome first = train_net(with_towers(3), 16, 20, 0.5f, 0.05f);
  EXPECT_EQ(train_net(with_towers(3), 16, 20, 0.5f, 0.05f), first);
}

TEST(TowersSession, SimulatedDevicesThatComputeTrainBitForBitAsTheCpu) {
  Cluster cluster = with_towers(3);
  const Outcome cpu = [&] {
    cluster.device.kind = "cpu";
    cluster.threads = 0;
    cluster.towers = 1;
    return train_net(cluster, 16, 10);
  }();
  for (const double gbps : {0.0, 100.0}) {
    cluster.device = {.kind = "sim", .sim_step_ms = 0.01, .sim_copy_gbps = gbps};
    cluster.device.sim_compute = true;
    EXPECT_EQ(train_net(cluster, 16, 10), cpu) << gbps;
  }
  cluster.towers = 3;
  const Outcome towers = train_net(cluster, 16, 10);
  cluster.device.sim_copy_gbps = 0;
  EXPECT_EQ(train_net(cluster, 16, 10), towers);
}

TEST(TowersSession, AWorkersTowersMakeOneContributionToTheParameterServers) {
  const Served served;
  EXPECT_EQ(train_net(with_towers(2, served.cluster()), 16, 20, 0.5f, 0.05f),
            train_net(with_towers(2), 16, 20, 0.5f, 0.05f));
}

TEST(TowersSession, TwoWorkersOfTwoTowersTrainTogether) {
  const Served served(2);
  const auto worker = [&](int index) {
    return std::async(std::launch::async, [&served, index] {
      return train_net(with_towers(2, served.cluster(index)), 16, 40);
    });
  };
  auto first = worker(0), second = worker(1);
  EXPECT_EQ(std::max(first.get().global_step, second.get().global_step), 80);
}

TEST(TowersSession, AccumulateMakesOneContributionOfTheStepsOfAllTowers) {
  Cluster cluster = with_towers(2);
  cluster.train.accumulate = 2;
  const Outcome four = train_net(cluster, 16, 20), one = train_net(with_towers(1), 64, 10);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR((four.losses[2 * i] + four.losses[2 * i + 1]) / 2, one.losses[i], 1e-5) << i;
  }
}

/// The steps of a StateModel, as they were seen.
struct SeenSteps {
  std::vector<std::int64_t> batches;
  std::vector<double> losses;
  std::vector<float> next;  // the mean over towers
  std::vector<std::string> lines;
};

SeenSteps train_state(const Cluster& cluster, const RunOptions& run, int steps) {
  StateModel model;
  Session session(model.training(), cluster, run, {.watch = {model.next}});
  SeenSteps seen;
  for (int i = 0; i < steps; ++i) {
    const auto result = session.step([&](Feed& feed) {
      std::int64_t& batch = feed.position().numbers["batch"];
      seen.batches.push_back(batch);
      feed.data<float>(model.x)[0] = float(batch++ % 5);
    });
    seen.losses.push_back(result->loss);
    seen.next.push_back(session.value(model.next).item<float>());
  }
  return seen;
}

TEST(TowersSession, BatchesGoToTheTowersInOrderAndEachHasItsOwnState) {
  const SeenSteps seen = train_state(with_towers(3), quiet(), 2);
  EXPECT_THAT(seen.batches, ElementsAre(0, 1, 2, 3, 4, 5));
  // Tower 0 sees 0 and 3, tower 1 sees 1 and 4, tower 2 sees 2 and 5 mod 5.
  EXPECT_THAT(seen.next, ElementsAre(1, (3.0f + 6 + 4) / 3));
}

TEST(TowersSession, ResumesWithTheNextBatchAndTheStateOfEveryTower) {
  const SeenSteps unbroken = train_state(with_towers(3), quiet(), 9);
  for (const bool with_ps : {false, true}) {
    const TemporaryFolder folder;
    RunOptions run = quiet();
    run.out = folder.path();
    run.summary_every = {};
    const auto part = [&](int steps) {
      const Served served;
      return train_state(with_towers(3, with_ps ? served.cluster() : Cluster()), run, steps);
    };
    part(4);
    run.resume = true;
    const SeenSteps resumed = part(5);
    EXPECT_EQ(resumed.batches.front(), 12);
    EXPECT_EQ(resumed.losses, std::vector(unbroken.losses.begin() + 4, unbroken.losses.end()));
    EXPECT_EQ(resumed.next, std::vector(unbroken.next.begin() + 4, unbroken.next.end()));
  }
}

TEST(TowersSession, ResumingWithOtherTowersSaysWhatBeginsAnew) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.out = folder.path();
  run.summary_every = {};
  train_state(with_towers(2), run, 2);
  run.resume = true;
  run.quiet = false;
  testing::internal::CaptureStdout();
  EXPECT_EQ(train_state(with_towers(3), run, 1).batches.front(), 4);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("the checkpoint has the local variables of 2 towers, and this run has 3: "
                        "those of the others begin anew"));
}

TEST(TowersSession, RandomNumbersAreDifferentOnEachTowerAndInEachStep) {
  const auto noises = [](int towers, int steps) {
    StateModel model;
    // With one tower the numbers of a step are those of its batch.
    Session session(model.training(), with_towers(towers), quiet(), {.watch = {model.noise}});
    std::vector<std::vector<float>> seen;
    for (int i = 0; i < steps; ++i) {
      session.step([&](Feed& feed) { feed.data<float>(model.x)[0] = 1; });
      const auto values = session.value(model.noise).data<float>();
      seen.emplace_back(values.begin(), values.end());
    }
    return seen;
  };
  const auto one = noises(1, 4), two = noises(2, 2);
  EXPECT_NE(one[0], one[1]);
  EXPECT_EQ(two[0], one[0]) << "tower 0 has batches 0 and 2";
  EXPECT_EQ(two[1], one[2]);
}

// x ↦ x, unless it is 13.
OpRegistry registry_with_unlucky() {
  OpRegistry registry = copy_of_builtin_ops();
  Op op;
  op.name = "unlucky";
  op.infer = [](const OpInputs& inputs) -> std::vector<ValueType> { return {inputs.types[0]}; };
  op.gradient = [](const Node&, std::span<const Value> gradients) {
    return std::vector<Gradient>{gradients[0]};
  };
  op.cost = [](const Node&) { return Cost{1, 8}; };
  op.kernel = [](const Node&, const KernelCall& call) {
    const float value = *call.inputs[0].as<float>();
    if (value == 13) throw Error(ErrorCode::kInternal, "[unlucky] got 13");
    *call.outputs[0].as<float>() = value;
  };
  register_op(registry, op);
  return registry;
}

TEST(TowersSession, AKernelThatThrowsOnOneTowerEndsTheRunWithItsError) {
  const OpRegistry registry = registry_with_unlucky();
  for (int unlucky = 0; unlucky < 3; ++unlucky) {
    Graph graph(registry);
    const Value x = graph.input("x", {1});
    const Value y =
        graph.apply("unlucky", {mul(graph.variable("w", {1}, Initializer::constant(1)), x)});
    Session session(minimize(reduce_sum(y), Sgd{0}), with_towers(3), quiet());
    const auto feed = [&](Feed& to) {
      to.data<float>(x)[0] = to.step() == 6 + unlucky ? 13.0f : 1.0f;
    };
    EXPECT_THAT(error_of(ErrorCode::kInternal, [&] { session.run(feed); }),
                HasSubstr("[unlucky] got 13"));
    EXPECT_EQ(session.last_step().step, 2);
  }
}

TEST(TowersSession, TheNanOfOneTowerIsFound) {
  StateModel model;
  Session session(model.training(), with_towers(2), quiet());
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] {
                         session.run([&](Feed& feed) {
                           feed.data<float>(model.x)[0] =
                               feed.step() == 5 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
                         });
                       }),
              HasSubstr("worker:0 contributed NaN or infinity to w in its step 2"));
}

TEST(TowersSession, MovingStatisticsAreThoseOfTheMeanOverTheTowers) {
  Graph graph;
  const Value x = graph.input("x", {1, 1, 2, 2});
  const Value y = batch_norm(x, "norm", {.training = true});
  Session session(minimize(reduce_mean(square(y)), Sgd{0}), with_towers(2), quiet());
  session.step([&](Feed& feed) {
    for (float& value : feed.data<float>(x)) value = feed.step() == 0 ? 1.0f : 3.0f;
  });
  EXPECT_NEAR(session.variables().get("norm/moving_mean").data<float>()[0], 0.1f * 2, 1e-6f);
}

TEST(TowersSession, TrainingsThatTakeTurnsHaveTheirTowers) {
  const auto train = [](int towers) {
    Graph graph;
    const Value x = graph.input("x", {1});
    const Value a = graph.variable("a", {1}), b = graph.variable("b", {1});
    std::vector<Training> trainings;
    trainings.push_back(minimize(
        reduce_sum(square(sub(a, x))), Sgd{0.1f},
        {.clip_norm = 0, .learning_rate = {}, .groups = {{.prefix = "b", .frozen = true}}}));
    trainings.push_back(minimize(
        reduce_sum(square(sub(b, a))), Sgd{0.1f},
        {.clip_norm = 0, .learning_rate = {}, .groups = {{.prefix = "a", .frozen = true}}}));
    Session session(std::move(trainings), with_towers(towers), quiet());
    std::vector<double> losses;
    losses.reserve(10);
    for (int step = 0; step < 10; ++step) {
      losses.push_back(
          session.step(step % 2, [&](Feed& feed) { feed.data<float>(x)[0] = 1; })->loss);
    }
    return losses;
  };
  EXPECT_EQ(train(2), train(1));
}

TEST(TowersSession, ReportsTheExamplesOfAllTowers) {
  StateModel model;
  Report report;
  RunOptions run = quiet();
  const TemporaryFolder folder;
  run.report = folder.path() + "/report.json";
  {
    Session session(model.training(), with_towers(3), run, {.examples_per_step = 5});
    EXPECT_EQ(SessionInside(session).options().examples_per_step, 15);
    for (int i = 0; i < 20; ++i) {
      session.step([&](Feed& feed) { feed.data<float>(model.x)[0] = 1; });
    }
  }
  report = read_report(run.report);
  EXPECT_EQ(report.towers, 3);
  EXPECT_EQ(report.tasks[0].steps, 20);
  EXPECT_NEAR(*report.tasks[0].examples_per_s, 15 * *report.tasks[0].steps_per_s,
              1e-9 * *report.tasks[0].examples_per_s);
}

TEST(TowersSession, AProgramThatTrainsNothingHasNone) {
  StateModel model;
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] { const Session session(model.graph, with_towers(2), quiet()); }),
              HasSubstr("--towers 2: towers train together"));
}

}  // namespace
}  // namespace paceline
