#include "train/learning_rates.h"

#include <string_view>
#include <unordered_map>

namespace paceline {

LearningRates::LearningRates(std::span<const VariableSpec> variables, const Training* training)
    : rates_(variables.size(), 0) {
  if (training == nullptr) return;
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < variables.size(); ++id) ids.emplace(variables[id].name, id);
  for (const VariableUpdate& update : training->updates) {
    const auto found = ids.find(update.variable.node().name());
    if (found == ids.end()) continue;
    trained_.push_back({found->second, double(update.rule.learning_rate()), update.learning_rate});
  }
}

std::span<const float> LearningRates::at(std::int64_t global_step) {
  for (const Trained& trained : trained_) {
    rates_[trained.variable] = float(trained.rate * trained.schedule.at(global_step) * factor_);
  }
  return rates_;
}

}  // namespace paceline
