// A run in progress: the tasks' own reports, the present speed, and its history.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "run/report/task_progress.h"

namespace paceline {

/// The facts of a run that are known before its first step.
struct RunAbout {
  std::string out;                    // --out; empty: nothing is written
  std::optional<std::int64_t> steps;  // the global step at which it ends
  std::optional<double> seconds;      // or its length
  std::vector<std::string> tasks;     // all of them: "worker:0", "ps:0"
};

/// The run over the last seconds before one moment.
struct RunPoint {
  double seconds = 0;  // since the run began
  std::optional<double> steps_per_s, loss, staleness, sent, received;
  /// The program's numbers by tag. Each is that of the first worker that reported it.
  std::map<std::string, double> numbers = {};
  /// The shares of time by activity: the mean over all workers, and over all ps tasks.
  std::vector<std::pair<std::string, double>> worker_share = {}, ps_share = {};
};

/// Collects what tasks report, with the times at which they do. It has no thread, clock or socket.
class LiveRun {
 public:
  LiveRun(RunAbout about, TimePoint now);

  /// Notes what a task has reported about itself. Ignores a task that the run does not have, and a
  /// report without exactly one entry.
  void heard(const std::string& task, TaskProgress progress, TimePoint now);
  /// Adds a point to the history.
  void add_point(TimePoint now);

  struct Task {
    /// Empty: the task has not reported anything yet.
    std::optional<TaskProgress> progress;
    // When the task last reported something, and when its number of steps last grew.
    TimePoint heard{}, moved{};
    // The reports of this task from the last seconds, oldest first.
    std::deque<TaskProgress> before = {};
  };
  const RunAbout& about() const { return about_; }
  const std::map<std::string, Task>& tasks() const { return tasks_; }
  /// Returns points at equal distances, few enough for a page to draw. When there are too many,
  /// every second one is removed.
  const std::vector<RunPoint>& history() const { return history_; }
  double seconds(TimePoint now) const;
  /// Returns all tasks as one report, as if the run ended now.
  Report report() const;
  static RecentTask recent(const Task& task);
  static LiveTask live(const Task& task, TimePoint now);
  /// Returns the run over the last seconds.
  RunPoint point(TimePoint now) const;
  /// Returns the present examples per second of all workers.
  std::optional<double> examples_per_s() const;
  /// Returns a sentence that says what holds the run back; empty while that is not known. While a
  /// task is silent, its silence is the cause, since the others wait for it.
  std::string cause(TimePoint now) const;

 private:
  std::string silence(TimePoint now) const;

  static constexpr std::size_t kMostPoints = 360;

  const RunAbout about_;
  const TimePoint begun_;
  std::map<std::string, Task> tasks_;
  std::vector<RunPoint> history_;
  std::size_t every_ = 1, skipped_ = 0;  // one of `every_` points is kept
};

/// A task that has reported nothing for this long stands still, or cannot be reached.
constexpr Duration kSilent = std::chrono::seconds(5);

bool is_worker(const std::string& task);

}  // namespace paceline
