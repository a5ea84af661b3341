// What a task's steps took, for the report: the timed ones, without evaluations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/report/report.h"
#include "trace/step_account.h"
#include "train/step_times.h"

namespace paceline {

/// Every moment between start() and stop() is a timed step's, unless exclude() took it out. So what
/// hooks and prints cost is counted (as other), and what an evaluation costs is not.
class StepMeter {
 public:
  /// `account` must outlive the meter and be the one that the steps use.
  StepMeter(StepAccount& account, std::int64_t examples_per_step, std::string unit);

  /// Timing begins now, between two steps.
  void start();
  /// Timing ends with the last step that was added.
  void stop();
  bool running() const { return running_; }
  bool stopped() const { return stopped_; }
  /// How long ago start() was.
  Duration since_start() const { return account_.clock().now() - started_; }

  /// Time that the account counted as other but that is no step's.
  void exclude(Duration duration) { excluded_ += duration; }
  /// Since start().
  Duration excluded() const { return excluded_; }
  /// A step ended. `transfer`: in which the links were busy since the last one.
  void add_step(Duration step, Duration transfer);

  std::int64_t steps() const { return steps_; }
  /// Of all steps so far, timed or not, by activity, without what was excluded.
  std::vector<std::pair<std::string, double>> seconds_spent();
  /// steps (all, untimed ones too), seconds, speeds, shares.
  TaskReport report(const std::string& task) const;

 private:
  Duration waited() const {
    return account_.spent(Activity::kPull) + account_.spent(Activity::kPush);
  }
  using Spent = std::array<Duration, kActivityCount>;
  void measure();
  /// Since the account began anew.
  Spent spent_now();

  StepAccount& account_;
  std::int64_t examples_per_step_;
  std::string unit_;
  bool running_ = false, stopped_ = false;
  TimePoint started_{};
  Duration excluded_{0}, waited_before_{0}, hidden_{0};
  std::int64_t steps_ = 0;
  StepTimes times_;
  // At the end of the last timed step.
  Spent spent_{};
  Spent spent_before_{};  // until start()
};

}  // namespace paceline
