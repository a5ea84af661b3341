// The learning rate of each variable at a step: the rate of its rule, times the schedule, times the
// worker's factor.
#pragma once

#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/minimize.h"

namespace paceline {

class LearningRates {
 public:
  /// `training` may be null: all rates are then 0.
  LearningRates(std::span<const VariableSpec> variables, const Training* training);
  void set_factor(double factor) { factor_ = factor; }
  /// Returns the rates by VariableId, valid until the next call.
  std::span<const float> at(std::int64_t global_step);
  /// Returns the rate of the first trained variable, as `at` last gave it; 0 when none is trained.
  double first() const { return trained_.empty() ? 0 : double(rates_[trained_[0].variable]); }

 private:
  struct Trained {
    std::size_t variable;
    double rate;
    Schedule schedule;
  };
  std::vector<Trained> trained_;
  std::vector<float> rates_;
  double factor_ = 1;
};

}  // namespace paceline
