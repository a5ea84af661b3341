#include "train/learning_rates.h"

namespace paceline {

LearningRates::LearningRates(std::span<const VariableSpec> variables, const Training* training)
    : rates_(variables.size(), 0) {
  if (training == nullptr) return;
  for (const VariableUpdate& update : training->updates) {
    for (std::size_t id = 0; id < variables.size(); ++id) {
      if (variables[id].name != update.variable.node().name()) continue;
      trained_.push_back({id, double(update.rule.learning_rate()), update.learning_rate});
    }
  }
}

std::span<const float> LearningRates::at(std::int64_t global_step) {
  for (const Trained& trained : trained_) {
    rates_[trained.variable] = float(trained.rate * trained.schedule.at(global_step) * factor_);
  }
  return rates_;
}

}  // namespace paceline
