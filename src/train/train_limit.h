// The end of training: at a global step, or after some time.
#pragma once

#include <cstdint>

#include "paceline/run_options.h"
#include "params/job_control.h"
#include "train/step_meter.h"

namespace paceline {

/// Decides, before each step, whether it is timed and whether it is made at all.
class TrainLimit {
 public:
  /// Meter and control must outlive the limit.
  TrainLimit(const RunOptions& run, StepMeter& meter, JobControl& control)
      : steps_(run.steps),
        seconds_(run.seconds),
        is_late_(control.was_initialised()),
        meter_(meter),
        control_(control) {}

  /// Returns true when another step is to be made. `global_step` is the last one known to this
  /// task. One worker makes exactly --steps; each of n workers may have one more step under way.
  /// The call also begins and ends the timing. Timing begins after kUntimedSteps own steps; with
  /// --seconds, when every worker has made them. A worker whose time is over goes on untimed until
  /// the time of every worker is over. A worker that was started again, or late, ends with the
  /// first worker that ends.
  bool go_on(std::int64_t global_step);
  /// Begins the timing if it is time to. go_on() calls it; for steps that train nothing, the
  /// session does.
  void start_when_warm();
  /// Returns how many seconds have been counted towards --seconds.
  double seconds_counted() const;

 private:
  bool time_is_over() const;

  std::optional<std::int64_t> steps_;
  std::optional<double> seconds_;
  bool is_late_;  // true: the job had begun when this worker joined
  StepMeter& meter_;
  JobControl& control_;
};

}  // namespace paceline
