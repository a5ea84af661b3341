// One finding about a run: a cause, a task, the change that helps, and its gain.
#pragma once

#include <string>

#include "run/report/limit.h"

namespace paceline {

struct Finding {
  Limit cause = Limit::kNothing;
  std::string task = {};         // "worker:2"; empty: the whole job
  std::string sentence = {};     // the cause, in words
  std::string advice = {};       // what to change; empty: nothing
  double gain = 1;               // the speed with that change, as a multiple of the measured speed
  std::string unit = "steps/s";  // in which the speed is told
  double speed = 0;              // the measured speed in `unit`; 0: the speed of the run

  /// True if something is wrong that a user would want to know.
  bool is_alarm() const { return cause != Limit::kNothing; }
  /// Returns "worker:2 is slow: … Without that: 11.2 → 14.9 steps/s." `steps_per_s` is the run's
  /// speed.
  std::string text(double steps_per_s) const;
};

}  // namespace paceline
