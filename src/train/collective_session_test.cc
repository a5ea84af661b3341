// Sessions that train by all-reduce, each in a thread as if it were a task of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "net/held_ports.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "params/job_control.h"
#include "run/interrupt.h"
#include "run/program_run.h"

namespace paceline {
namespace {

constexpr std::int64_t kInputs = 8, kOutputs = 3, kWholeBatch = 12;

/// A session that trains a small multilayer perceptron on a part of each batch.
class MlpSession {
 public:
  MlpSession(const Cluster& cluster, const RunOptions& run, int part, int parts)
      : first_(kWholeBatch * part / parts), examples_(kWholeBatch * (part + 1) / parts - first_) {
    x_ = graph_.input("x", {examples_, kInputs});
    y_ = graph_.input("y", {examples_, kOutputs});
    const Value h = tanh(dense(x_, 16, "hidden"));
    const Value loss = reduce_mean(square(sub(dense(h, kOutputs, "out"), y_)));
    MinimizeOptions options;
    options.clip_norm = 0.5f;
    SessionOptions session;
    session.examples_per_step = examples_;
    session_ = std::make_unique<Session>(minimize(loss, Momentum{.learning_rate = 0.05f}, options),
                                         cluster, run, session);
  }
  std::vector<double> run(int batches) {
    std::vector<double> losses;
    for (int i = 0; i < batches; ++i) {
      const auto made = session_->step([this](Feed& feed) { fill(feed); });
      if (!made) break;
      losses.push_back(made->loss);
    }
    return losses;
  }
  Session& session() { return *session_; }
  std::int64_t examples() const { return examples_; }

 private:
  void fill(Feed& feed) {
    const auto number = [&](std::int64_t row, std::int64_t column) {
      return float(std::sin(double(feed.step() * 131 + (first_ + row) * 17 + column * 5)));
    };
    const std::span<float> x = feed.data<float>(x_), y = feed.data<float>(y_);
    for (std::int64_t row = 0; row < examples_; ++row) {
      for (std::int64_t c = 0; c < kInputs; ++c) x[std::size_t(row * kInputs + c)] = number(row, c);
      for (std::int64_t c = 0; c < kOutputs; ++c) {
        y[std::size_t(row * kOutputs + c)] = x[std::size_t(row * kInputs + c)] * 0.5f;
      }
    }
  }

  const std::int64_t first_, examples_;
  Graph graph_;
  Value x_, y_;
  std::unique_ptr<Session> session_;
};

class CollectiveSession : public ::testing::TestWithParam<const char*> {
 protected:
  explicit CollectiveSession() { run_.quiet = true; }
  Cluster cluster(int worker, int workers) {
    if (!ports_) ports_.emplace(workers);
    Cluster cluster;
    cluster.process = Cluster::Process::kTask;
    cluster.spec.workers = ports_->addresses();
    cluster.task = {TaskId::Role::kWorker, worker};
    cluster.cluster_id = "test";
    cluster.strategy.name = "allreduce";
    cluster.links.kind = GetParam();
    cluster.threads = 1;
    return cluster;
  }
  /// Calls train(worker) for each worker, in a thread of its own.
  void each(int workers, const std::function<void(int)>& train) {
    for (int w = 0; w < workers; ++w) cluster(w, workers);  // the ports are chosen here
    std::vector<std::future<void>> running;
    running.reserve(std::size_t(workers));
    for (int w = 0; w < workers; ++w) {
      running.push_back(std::async(std::launch::async, [&train, w] { train(w); }));
    }
    for (auto& one : running) one.get();
  }

  RunOptions run_;
  std::optional<HeldPorts> ports_;
};

INSTANTIATE_TEST_SUITE_P(Links, CollectiveSession, ::testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

/// A launcher's message to a task that no other task is left to join.
class NobodyLeft {
 public:
  NobodyLeft() {
    if (pipe(ends_) != 0) throw Error(ErrorCode::kInternal, "no pipe");
    close(ends_[1]);
    interrupt_.emplace(ends_[0]);
  }
  ~NobodyLeft() { close(ends_[0]); }
  const Interrupt* interrupt() const { return &*interrupt_; }

 private:
  int ends_[2];
  std::optional<Interrupt> interrupt_;
};

TEST_P(CollectiveSession, AWorkerThatIsBackAfterTheOthersHaveEndedWaitsForNobody) {
  const NobodyLeft nobody_left;
  own_program_run(run_).interrupt = nobody_left.interrupt();
  for (const int worker : {0, 1}) {
    EXPECT_THROW(MlpSession(cluster(worker, 2), run_, worker, 2), JobIsOver) << worker;
  }
}

TEST_P(CollectiveSession, TheChiefAloneMakesTheStepsThatNoCheckpointHas) {
  const NobodyLeft nobody_left;
  const TemporaryFolder folder;
  own_program_run(run_).interrupt = nobody_left.interrupt();
  run_.out = folder.path();
  run_.steps = 5;
  EXPECT_EQ(MlpSession(cluster(0, 2), run_, 0, 2).run(10).size(), 5);
  run_.resume = true;
  EXPECT_THROW(MlpSession(cluster(0, 2), run_, 0, 2), JobIsOver) << "all steps are saved";
}

TEST_P(CollectiveSession, WorkersOnPartsOfABatchTrainAsOneOnTheWhole) {
  constexpr int kSteps = 200, kWorkers = 3;
  MlpSession whole(Cluster(), run_, 0, 1);
  const std::vector<double> expected = whole.run(kSteps);
  std::vector<std::vector<double>> losses(kWorkers);
  each(kWorkers, [&](int worker) {
    MlpSession part(cluster(worker, kWorkers), run_, worker, kWorkers);
    losses[std::size_t(worker)] = part.run(kSteps);
  });
  for (int step = 0; step < kSteps; ++step) {
    double mean = 0;
    for (const std::vector<double>& own : losses) mean += own.at(std::size_t(step)) / kWorkers;
    ASSERT_NEAR(mean, expected[std::size_t(step)], 1e-4 * std::abs(expected[std::size_t(step)]))
        << "step " << step;
  }
}

TEST_P(CollectiveSession, TheCheckpointHasTheStateOfEachWorkerAndTrainingGoesOnFromIt) {
  constexpr int kWorkers = 2;
  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.steps = 5;
  each(kWorkers, [&](int worker) {
    MlpSession part(cluster(worker, kWorkers), run_, worker, kWorkers);
    EXPECT_EQ(part.run(100).size(), 5u);
  });
  const auto newest = Checkpoints(folder.path() + "/checkpoints").newest_whole(WholeCheck::kSizes);
  ASSERT_TRUE(newest.whole);
  const CheckpointReader reader(newest.whole->path);
  EXPECT_EQ(reader.index().global_step, 5);
  for (const char* task : {"worker:0", "worker:1"}) {
    ASSERT_NE(reader.index().task(task), nullptr) << task;
    EXPECT_EQ(reader.index().task(task)->step, 5) << task;
  }
  ports_.reset();
  run_.resume = true;
  run_.steps = 8;
  each(kWorkers, [&](int worker) {
    MlpSession part(cluster(worker, kWorkers), run_, worker, kWorkers);
    EXPECT_EQ(part.session().last_step().step, 5);
    EXPECT_EQ(part.run(100).size(), 3u);
  });
}

TEST_P(CollectiveSession, AWorkerWithLessDataLeavesAndTheOtherGoesOn) {
  each(2, [&](int worker) {
    MlpSession part(cluster(worker, 2), run_, worker, 2);
    EXPECT_EQ(part.run(worker == 0 ? 3 : 7).size(), worker == 0 ? 3u : 7u);
    part.session().finish_training();
  });
}

}  // namespace
}  // namespace paceline
