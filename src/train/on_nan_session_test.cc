// The fate of a contribution with NaN (--on-nan), in every strategy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "net/held_ports.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "run/report/report.h"
#include "train/testing/served.h"
#include "train/testing/towers.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr int kBadStep = 3;  // the step in which the batch of one worker has NaN or infinity
constexpr int kSteps = 6;

struct NanCase {
  std::string name, strategy;
  int workers = 1, towers = 1, accumulate = 1;
  float clip_norm = 0;
  bool shared = true;  // links through shared memory; false: TCP
  float bad = std::numeric_limits<float>::quiet_NaN();
};
std::ostream& operator<<(std::ostream& out, const NanCase& test) { return out << test.name; }

/// The outcome of one worker's training.
struct TrainedThroughNan {
  std::string error;
  std::int64_t global_step = 0;
  std::vector<float> values;  // of all variables
  std::optional<std::int64_t> skipped;
};

/// True where --steps counts the steps of all workers, and no worker waits for another at the end.
bool counts_all(const NanCase& test) { return test.strategy == "async" || test.strategy == "ssp"; }

/// Lets workers that do not wait for each other wait until the bad batch was fed, so that all of
/// them see its effect.
struct BadBatch {
  std::promise<void> fed;
  std::shared_future<void> seen = fed.get_future().share();
};

/// Trains a model with rows and a dense layer.
TrainedThroughNan train(const Cluster& cluster, const NanCase& test, RunOptions run, bool has_nan,
                        BadBatch& bad_batch) {
  const TemporaryFolder folder;
  run.report = folder.path("report.json");
  Graph graph;
  const Value ids = graph.input("ids", {4}, DType::kInt32), x = graph.input("x", {4, 3});
  const Value rows = embedding_lookup(graph.variable("rows", {10, 3}), ids);
  const Value loss = reduce_mean(square(dense(mul(rows, x), 2, "layer")));
  TrainedThroughNan trained;
  try {
    Session session(minimize(loss, Adam{.learning_rate = 0.01f}, {.clip_norm = test.clip_norm}),
                    cluster, run);
    session.run([&](Feed& feed) {
      for (int i = 0; i < 4; ++i) feed.data<std::int32_t>(ids)[std::size_t(i)] = 4 + i;
      std::ranges::fill(feed.data<float>(x), 0.5f);
      if (feed.step() != kBadStep) return;
      if (has_nan) {
        feed.data<float>(x)[4] = test.bad;  // of row 5
        bad_batch.fed.set_value();
      } else if (counts_all(test)) {
        bad_batch.seen.wait_for(std::chrono::seconds(60));
      }
    });
    trained.global_step = session.last_step().global_step;
    for (const std::string& name : session.variables().names()) {
      const Tensor value = session.variables().get(name);
      trained.values.insert(trained.values.end(), value.data<float>().begin(),
                            value.data<float>().end());
    }
  } catch (const Error& error) {
    trained.error = error.what();
    return trained;
  }
  trained.skipped = read_report(folder.path("report.json")).tasks[0].skipped;
  return trained;
}

class OnNanSession : public ::testing::TestWithParam<NanCase> {
 protected:
  OnNanSession() {
    const NanCase& test = GetParam();
    if (test.strategy == "allreduce") ports_.emplace(test.workers);
    if (test.strategy != "allreduce" && test.strategy != "alone") served_.emplace(test.workers);
  }
  Cluster cluster(int worker, OnNan on_nan) const {
    const NanCase& test = GetParam();
    Cluster cluster;
    if (served_) cluster = served_->cluster(worker);
    if (ports_) {
      cluster.process = Cluster::Process::kTask;
      cluster.spec.workers = ports_->addresses();
      cluster.task = {TaskId::Role::kWorker, worker};
      cluster.cluster_id = "test";
    }
    cluster.strategy.name = test.strategy;
    cluster.links.kind = test.shared ? "auto" : "tcp";
    cluster.threads = 1;
    cluster.train.on_nan = on_nan;
    cluster.train.accumulate = test.accumulate;
    return test.towers > 1 ? with_towers(test.towers, cluster) : cluster;
  }
  /// The last worker has the bad batch.
  std::vector<TrainedThroughNan> train_all(OnNan on_nan) const {
    const int workers = GetParam().workers;
    BadBatch bad_batch;
    std::vector<std::future<TrainedThroughNan>> training;
    training.reserve(std::size_t(workers));
    for (int worker = 0; worker < workers; ++worker) {
      training.push_back(std::async(std::launch::async, [&, worker] {
        RunOptions run;
        run.quiet = true;
        run.steps = counts_all(GetParam()) ? kSteps * workers : kSteps;
        if (on_nan == OnNan::kStop) run.steps = 1'000'000;  // nobody gets there
        return train(cluster(worker, on_nan), GetParam(), run, worker == workers - 1, bad_batch);
      }));
    }
    std::vector<TrainedThroughNan> trained;
    trained.reserve(training.size());
    for (auto& worker : training) trained.push_back(worker.get());
    return trained;
  }

 private:
  std::optional<Served> served_;
  std::optional<HeldPorts> ports_;
};

constexpr float kInfinity = std::numeric_limits<float>::infinity();
INSTANTIATE_TEST_SUITE_P(
    Strategies, OnNanSession,
    ::testing::Values(NanCase{"alone", "alone"},
                      NanCase{"infinite", "alone", 1, 1, 1, 0, true, kInfinity},
                      NanCase{"clipped", "alone", 1, 1, 1, 0.1f},
                      NanCase{"accumulate", "alone", 1, 1, 2}, NanCase{"towers", "alone", 1, 2},
                      NanCase{"async", "async"}, NanCase{"async_tcp", "async", 1, 1, 1, 0, false},
                      NanCase{"async_2", "async", 2}, NanCase{"ssp", "ssp", 2},
                      NanCase{"sync", "sync", 2}, NanCase{"sync_clipped", "sync", 2, 1, 1, 0.1f},
                      NanCase{"sync_tcp", "sync", 2, 1, 1, 0, false},
                      NanCase{"allreduce", "allreduce", 2},
                      NanCase{"allreduce_clipped", "allreduce", 2, 1, 1, 0.1f},
                      NanCase{"allreduce_tcp", "allreduce", 3, 1, 1, 0, false}),
    [](const auto& one) { return one.param.name; });

TEST_P(OnNanSession, StopEndsTheJobAndNamesWorkerVariableAndStep) {
  const std::vector<TrainedThroughNan> all = train_all(OnNan::kStop);
  const int worker = int(all.size()) - 1;
  for (const TrainedThroughNan& trained : all) {
    EXPECT_THAT(trained.error, HasSubstr("worker:" + std::to_string(worker) + " contributed NaN"));
    const std::string step = " in its step " + std::to_string(kBadStep / GetParam().towers);
    EXPECT_THAT(trained.error,
                ::testing::ContainsRegex("to (rows" + step + ": element 1[567]|layer/[a-z]+" +
                                         step + ": element [0-9]+) is -?(nan|inf)"));
  }
}

TEST_P(OnNanSession, SkipLeavesTheContributionOutAndCountsIt) {
  const std::vector<TrainedThroughNan> all = train_all(OnNan::kSkip);
  for (const TrainedThroughNan& trained : all) {
    EXPECT_EQ(trained.error, "");
    EXPECT_TRUE(std::ranges::all_of(trained.values, [](float x) { return std::isfinite(x); }));
    if (!counts_all(GetParam())) {
      EXPECT_EQ(trained.global_step, kSteps);
    }
  }
  EXPECT_EQ(all.back().skipped, 1);
  // In an all-reduce the mean has the NaN, so no worker applies it.
  const bool all_skip = all.size() == 1 || GetParam().strategy == "allreduce";
  EXPECT_EQ(all.front().skipped, all_skip ? 1 : 0);
}

TEST(OnNanSkip, SaysWhenTheLossWasInfinite) {
  Graph graph;
  const Value x = graph.input("x", {2, 2});
  const Value loss = reduce_mean(square(mul(matmul(x, graph.variable("w", {2, 2})), x)));
  Cluster cluster;
  cluster.threads = 1;
  cluster.train.on_nan = OnNan::kSkip;
  RunOptions run;
  run.steps = 4;
  ::testing::internal::CaptureStdout();
  {
    Session session(minimize(loss, Sgd{0.0f}), cluster, run);
    session.run([&](Feed& feed) {
      std::ranges::fill(feed.data<float>(x), feed.step() == 1 ? kInfinity : 1.0f);
    });
  }
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("--on-nan skip: the loss was NaN or infinite in 1 of 4 steps, and 1 "
                        "contribution was left out, in steps 1 to 1 of this task"));
}

}  // namespace
}  // namespace paceline
