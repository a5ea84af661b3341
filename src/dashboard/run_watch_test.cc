#include "dashboard/run_watch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <optional>

#include "base/deadline.h"
#include "base/real_clock.h"
#include "paceline/error.h"
#include "params/progress_board.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class RunWatchTest : public ::testing::Test {
 protected:
  RunWatch::Options options() {
    RunWatch::Options options;
    options.about.tasks = {"worker:0", "worker:1"};
    options.clock = &clock_;
    options.hear = [this] {
      std::vector<TaskWords> heard;
      for (const ProgressBoard::Heard& each : board_.heard_after(heard_)) {
        heard.push_back({each.task, each.text});
      }
      heard.push_back({"worker:0", board_.told()});
      return heard;
    };
    options.every = 1ms;
    return options;
  }
  // Counts the calls of `look`, and keeps how many steps each task has made; −1 if the task was not
  // heard yet.
  RunWatch::Look look() {
    return [this](LiveRun& run, TimePoint) {
      const std::lock_guard lock(mutex_);
      ++looks_;
      for (const auto& [name, task] : run.tasks()) {
        steps_[name] = task.progress ? task.progress->report.tasks.front().steps : -1;
      }
      changed_.notify_all();
    };
  }
  template <typename Ready>
  bool wait_until(Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, ready);
  }
  bool has_made(const std::string& task, std::int64_t steps) {
    return wait_until([&] { return steps_.contains(task) && steps_[task] == steps; });
  }
  static std::string progress(const std::string& task, std::int64_t steps) {
    TaskProgress progress;
    progress.at = double(steps);
    TaskReport report;
    report.task = task;
    report.steps = steps;
    progress.report.tasks = {report};
    return progress.to_json();
  }

  RealClock clock_;
  ProgressBoard board_;
  std::int64_t heard_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::int64_t> steps_;
  int looks_ = 0, asked_ = 0;
};

TEST_F(RunWatchTest, SeesWhatThisTaskTellsAndHearsOfOthers) {
  const RunWatch watch(options(), look());
  EXPECT_TRUE(has_made("worker:0", -1));
  board_.tell(progress("worker:0", 7));
  board_.heard("worker:1", progress("worker:1", 9));
  EXPECT_TRUE(has_made("worker:0", 7));
  EXPECT_TRUE(has_made("worker:1", 9));
}

TEST_F(RunWatchTest, WordsThatMakeNoSenseAreLeftOut) {
  const RunWatch watch(options(), look());
  board_.heard("worker:1", "no JSON");
  board_.heard("worker:9", progress("worker:9", 3));
  board_.tell(progress("worker:0", 7));
  EXPECT_TRUE(has_made("worker:0", 7));
  EXPECT_TRUE(has_made("worker:1", -1));
  board_.heard("worker:1", progress("ps:0", 9));
  EXPECT_TRUE(has_made("worker:1", 9)) << "it speaks of itself only";
}

TEST_F(RunWatchTest, AsksTheOthersAgainAndAgainUntilItIsToldNotTo) {
  RunWatch watch(options(), look());
  watch.ask_with([&] {
    const std::lock_guard lock(mutex_);
    ++asked_;
    throw Error(ErrorCode::kUnavailable, "whatever happens");
  });
  EXPECT_TRUE(wait_until([&] { return asked_ >= 3; }));
  watch.ask_with({});
  std::optional<int> looks, asked;
  EXPECT_TRUE(wait_until([&] {
    if (!looks) looks = looks_, asked = asked_;
    return looks_ >= *looks + 3;
  }));
  EXPECT_EQ(asked_, asked);
}

}  // namespace
}  // namespace paceline
