// Learning-rate schedules: factors on the learning rates of rules, by step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace paceline {

/// A factor as a function of the global step. The default is the factor 1. Where several schedules
/// apply, their factors are multiplied.
class Schedule {
 public:
  Schedule() = default;
  /// Any function of the global step. One thread at a time calls it.
  explicit Schedule(std::function<double(std::int64_t step)> factor) : factor_(std::move(factor)) {}

  /// The same factor in every step.
  static Schedule constant(double factor);
  /// rate^(step / decay_steps) (Szegedy et al., arXiv 1512.00567, section 8: 0.94 in 2 epochs).
  static Schedule exponential(double rate, std::int64_t decay_steps);
  /// rate^⌊step / decay_steps⌋ (Szegedy et al., arXiv 1409.4842, section 6: 0.96 every 8 epochs).
  static Schedule staircase(double rate, std::int64_t decay_steps);
  /// factors[i] for steps in [boundaries[i−1], boundaries[i]). There is one factor more than there
  /// are boundaries
  /// (He et al., arXiv 1512.03385, section 4.2: a tenth from step 32,000 and again from 48,000).
  static Schedule piecewise(std::vector<std::int64_t> boundaries, std::vector<double> factors);
  /// (1 − end)·(1 − step/decay_steps)^power + end; `end` from decay_steps on
  /// (the "poly" policy of Chen et al., arXiv 1606.00915, whose `end` is 0).
  static Schedule polynomial(std::int64_t decay_steps, double end, double power);
  /// (1 − end)·½(1 + cos(π·step/decay_steps)) + end (Loshchilov & Hutter, arXiv 1608.03983).
  static Schedule cosine(std::int64_t decay_steps, double end = 0);
  /// (step + 1)/warm_up_steps for the first steps, then `after` counted from there (the gradual
  /// warm-up of Goyal et al., arXiv 1706.02677, section 2.2).
  static Schedule warm_up(std::int64_t warm_up_steps, Schedule after);

  /// The factor at a global step.
  double at(std::int64_t step) const { return factor_ ? factor_(step) : 1.0; }

 private:
  std::function<double(std::int64_t)> factor_;
};

}  // namespace paceline
