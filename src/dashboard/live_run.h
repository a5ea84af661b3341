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

/// The run over the last seconds, at one moment.
struct RunPoint {
  double seconds = 0;  // since it began
  std::optional<double> steps_per_s, loss, staleness, sent, received;
  /// The program's numbers by tag, each of the first worker that has told it.
  std::map<std::string, double> numbers = {};
  /// The mean shares of all workers and of all ps tasks.
  std::vector<std::pair<std::string, double>> worker_share = {}, ps_share = {};
};

/// Takes what tasks say, and times; no thread, clock or socket is inside.
class LiveRun {
 public:
  LiveRun(RunAbout about, TimePoint now);

  /// A task has said this of itself. What is said of any other task is left out.
  void heard(const std::string& task, TaskProgress progress, TimePoint now);
  /// Adds a point to the history.
  void add_point(TimePoint now);

  struct Task {
    /// Nothing: it has not said anything yet.
    std::optional<TaskProgress> progress;
    TimePoint heard{}, moved{};  // when it said something; when its steps last became more
    std::deque<TaskProgress> before = {};  // what it said within the last seconds, the oldest first
  };
  const RunAbout& about() const { return about_; }
  const std::map<std::string, Task>& tasks() const { return tasks_; }
  /// Returns points at equal distances, few enough for a page to draw: when there are more, every
  /// second one is left out.
  const std::vector<RunPoint>& history() const { return history_; }
  double seconds(TimePoint now) const;
  /// All tasks as one report, as if the run ended now.
  Report report() const;
  static RecentTask recent(const Task& task);
  static LiveTask live(const Task& task, TimePoint now);
  /// The run as it is now.
  RunPoint point(TimePoint now) const;
  /// Examples a second of all workers now.
  std::optional<double> examples_per_s() const;
  /// A sentence that says what holds the run back; empty before it is known. While a task is silent
  /// it is that: what the others wait for is then no other cause.
  std::string cause(TimePoint now) const;

 private:
  std::string silence(TimePoint now) const;

  static constexpr std::size_t kMostPoints = 360;

  const RunAbout about_;
  const TimePoint begun_;
  std::map<std::string, Task> tasks_;
  std::vector<RunPoint> history_;
  std::size_t every_ = 1, skipped_ = 0;  // one of so many points is kept
};

/// A task that has said nothing for so long stands still, or cannot be reached.
constexpr Duration kSilent = std::chrono::seconds(5);

bool is_worker(const std::string& task);

}  // namespace paceline
