// Studies how many learners use their time if their speeds differ and they sometimes fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace paceline {

/// Times are in seconds.
struct LearnerStudy {
  int learners = 1;
  double step_s = 1;
  /// The standard deviation of a step's time, as a fraction of the mean time. Half of the variance
  /// is a constant difference between learners; the other half is drawn anew in each step.
  double uneven = 0;
  double mtbf_s = 0;      // a learner's mean time between failures; 0: none fails
  double restart_s = 60;  // until a failed learner is back
  double notice_s = 5;    // the time until the others know that a learner has failed
  double exchange_s = 0;  // the time to send a contribution and get its answer
  int local_steps = 20;
  std::uint64_t seed = 1;
};

/// How all learners together spend their time under one strategy. The fields from `useful` to
/// `away` are shares of that time and add up to 1.
struct LearnerTimes {
  std::string strategy;
  double steps_per_s = 0;  // steps that count, of all learners together
  double useful = 0;       // computing work that counts
  double waiting = 0;      // waiting for others
  double exchanging = 0;
  double lost = 0;     // computing work that counts nowhere
  double away = 0;     // absent after a failure
  double seconds = 0;  // simulated time
  std::int64_t failures = 0;
};

/// Studies async, ssp, sync of all and of 95% of the learners, and local steps with and without
/// rounds. Calls `progress` with the name of each strategy before its simulation. Returns the
/// strategy with the most useful time first. Takes some 25 s for 100,000 learners.
std::vector<LearnerTimes> study_learners(
    const LearnerStudy& study, const std::function<void(const std::string&)>& progress = {});

/// Returns the table, with remarks about it.
std::string learners_text(const LearnerStudy& study, const std::vector<LearnerTimes>& times);

}  // namespace paceline
