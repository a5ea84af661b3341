// Sessions with gradient accumulation: their steps and losses, their checkpoints, and resuming.
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoints.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/quiet.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

constexpr int kWindow = 4;  // own steps of a worker

Cluster by_windows(Cluster cluster) {
  cluster.threads = 1;
  cluster.train.accumulate = kWindow;
  return cluster;
}

Cluster alone_by_windows() { return by_windows({}); }

/// The numbers and the losses of the own steps of a training, and its last global step.
struct Seen {
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  std::int64_t global_step = 0;
};

struct Note : Hook {
  explicit Note(Seen& note_in) : seen(note_in) {}
  bool after_step(Session&, const StepResult& result) override {
    seen.losses.push_back(result.loss);
    seen.global_step = result.global_step;
    return true;
  }
  Seen& seen;
};

// Trains until `feeds` own steps are fed, or until `run` ends the training.
Seen train(const Cluster& cluster, const RunOptions& run, std::int64_t feeds) {
  Graph graph;
  const Value x = graph.input("x", {2, 3});
  const Value h = dense(x, 2, "layer");
  const Value y = graph.constant(Tensor(DType::kFloat32, {2, 2}));
  Session session(minimize(reduce_mean(square(sub(h, y))), Sgd{0.1f}), cluster, run);
  Seen seen;
  session.add(Note(seen));
  session.run([&](Feed& feed) {
    if (feeds-- == 0) return feed.stop();
    seen.steps.push_back(feed.step());
    const auto values = feed.data<float>(x);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = float((std::size_t(feed.step()) * 5 + i * i) % 7) / 7;
    }
  });
  return seen;
}

TEST(AccumulateSession, StepsAreGlobalStepsAndEveryLossIsThatOfOneProcess) {
  RunOptions run = quiet();
  run.steps = 15;
  Served served;
  const Seen near = train(alone_by_windows(), run, 1000),
             far = train(by_windows(served.cluster()), run, 1000);
  EXPECT_EQ(near.steps.size(), 60U);
  EXPECT_EQ(near.global_step, 15);
  EXPECT_EQ(near.losses, far.losses);
}

// 10 own steps end in the middle of the third window. The window's sum is dropped, and training
// resumes at the window's first step.
TEST(AccumulateSession, ResumesAtTheBeginningOfTheWindowThatWasUnderWay) {
  for (const bool with_ps : {false, true}) {
    const auto cluster = [&](Served& served) {
      return with_ps ? by_windows(served.cluster()) : alone_by_windows();
    };
    const Seen unbroken = train(alone_by_windows(), quiet(), 20);
    const TemporaryFolder folder;
    RunOptions run = quiet();
    run.out = folder.path();
    run.summary_every = {};
    {
      Served served;
      EXPECT_EQ(train(cluster(served), run, 10).global_step, 2);
    }
    run.resume = true;
    Served served;
    const Seen resumed = train(cluster(served), run, 12);
    EXPECT_EQ(resumed.steps.front(), 8);
    EXPECT_EQ(resumed.global_step, 5);
    EXPECT_EQ(resumed.losses, std::vector(unbroken.losses.begin() + 8, unbroken.losses.end()));
  }
}

// Returns the step of each worker in the newest checkpoint. It is the number of the task's own
// steps, whereas the ps counts windows.
std::map<std::string, std::int64_t> saved_steps_of(const std::string& folder) {
  const auto newest = Checkpoints(folder + "/checkpoints").newest_whole(WholeCheck::kSizes).whole;
  std::map<std::string, std::int64_t> steps;
  if (!newest) return steps;
  for (const SavedTask& task : read_index(newest->path).tasks) steps[task.task] = task.step;
  return steps;
}

TEST(AccumulateSession, ACheckpointHasTheOwnStepsOfEveryWorkerAndEachGoesOnFromThere) {
  const TemporaryFolder folder;
  RunOptions run = quiet();
  run.out = folder.path();
  run.summary_every = {};
  const auto train_both = [&](int chief_steps, int other_steps) {
    const Served served(2);
    auto other = std::async(std::launch::async,
                            [&] { return train(by_windows(served.cluster(1)), run, other_steps); });
    const Seen chief = train(by_windows(served.cluster(0)), run, chief_steps);
    return std::pair(chief, other.get());
  };
  train_both(kWindow, 3 * kWindow);
  using Steps = std::map<std::string, std::int64_t>;
  EXPECT_EQ(saved_steps_of(folder.path()),
            (Steps{{"worker:0", kWindow}, {"worker:1", 3 * kWindow}}));
  run.resume = true;
  const auto [chief, other] = train_both(kWindow, kWindow);
  EXPECT_EQ(chief.steps.front(), kWindow);
  EXPECT_EQ(other.steps.front(), 3 * kWindow);
  EXPECT_EQ(saved_steps_of(folder.path()),
            (Steps{{"worker:0", 2 * kWindow}, {"worker:1", 4 * kWindow}}));
}

}  // namespace
}  // namespace paceline
