// How much of their time many learners use that are uneven, and fail now and then.
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
  /// The standard deviation of a step's time, as a part of it. Half of the variance stays with a
  /// learner, and the other half is new in each step.
  double uneven = 0;
  double mtbf_s = 0;      // a learner's mean time between failures; 0: none fails
  double restart_s = 60;  // after which one that failed is back
  double notice_s = 5;    // after which the others know that it is gone
  double exchange_s = 0;  // in which a contribution is sent and answered
  int local_steps = 20;
  std::uint64_t seed = 1;
};

/// The time of all learners under one strategy, by what they did. The shares add up to 1.
struct LearnerTimes {
  std::string strategy;
  double steps_per_s = 0;  // of all learners, those that count
  double useful = 0;       // computing what counts
  double waiting = 0;      // for others
  double exchanging = 0;
  double lost = 0;     // computing what counts nowhere
  double away = 0;     // after a failure
  double seconds = 0;  // that were simulated
  std::int64_t failures = 0;
};

/// By async, ssp, sync of all and of 95% of the learners, and local steps with rounds and without.
/// `progress` is given the name of each strategy before it is simulated. Takes some 25 s for
/// 100,000 learners.
std::vector<LearnerTimes> study_learners(
    const LearnerStudy& study, const std::function<void(const std::string&)>& progress = {});

/// The table, and what is to be said about it.
std::string learners_text(const LearnerStudy& study, const std::vector<LearnerTimes>& times);

}  // namespace paceline
