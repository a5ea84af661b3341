// Measures the timed steps of a task for the report, without evaluations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "run/report/report.h"
#include "trace/step_account.h"

namespace paceline {

/// The times of steps, in a histogram that is laid out once. Each bucket is half a per cent longer
/// than the one before, from a microsecond to three hours. Adding a time allocates nothing.
class StepTimes {
 public:
  void add(Duration step);
  std::int64_t count() const { return count_; }
  /// Returns the time that `share` of the steps did not exceed, to half a per cent; empty without
  /// steps.
  std::optional<double> quantile_ms(double share) const;

 private:
  static constexpr int kBuckets = 4608;
  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t count_ = 0;
};

/// Every moment between start() and stop() belongs to a timed step, unless exclude() took it out.
/// So the time of hooks and prints counts (as other), and the time of an evaluation does not.
class StepMeter {
 public:
  /// `account` is the account that the steps use. It must outlive the meter.
  StepMeter(StepAccount& account, std::string unit);

  /// Timing begins now, between two steps.
  void start();
  /// Ends timing with the last step that was added.
  void stop();
  bool running() const { return running_; }
  bool stopped() const { return stopped_; }
  /// Returns the time since start().
  Duration since_start() const { return account_.clock().now() - started_; }

  /// Takes out time that the account counted as other but that belongs to no step.
  void exclude(Duration duration) { excluded_ += duration; }
  /// Returns the time that was taken out since start().
  Duration excluded() const { return excluded_; }
  /// Adds a step that has ended, of `examples` examples. `transfer` is the time that the links were
  /// busy since the last step.
  void add_step(Duration step, Duration transfer, std::int64_t examples);

  std::int64_t steps() const { return steps_; }
  /// Returns the seconds of all steps so far, timed or not, by activity, without excluded time.
  std::vector<std::pair<std::string, double>> seconds_spent();
  /// Returns the number of all steps, and the seconds, speeds and shares of the timed ones.
  TaskReport report(const std::string& task) const;

 private:
  Duration waited() const {
    return account_.spent(Activity::kPull) + account_.spent(Activity::kPush);
  }
  using Spent = std::array<Duration, kActivityCount>;
  void measure();
  /// Returns the time since the account was reset, by activity, without excluded time.
  Spent spent_now();

  StepAccount& account_;
  std::string unit_;
  bool running_ = false, stopped_ = false;
  TimePoint started_{};
  Duration excluded_{0}, waited_before_{0}, hidden_{0};
  std::int64_t steps_ = 0;
  std::int64_t examples_ = 0;  // of the timed steps
  StepTimes times_;
  // The times at the end of the last timed step.
  Spent spent_{};
  Spent spent_before_{};  // until start()
};

}  // namespace paceline
