#include "params/hybrid/hybrid_steps.h"

namespace paceline {

HybridPlaces::HybridPlaces(std::span<const VariableSpec> variables) {
  for (const VariableSpec& variable : variables) {
    std::vector<VariableId>& part = variable.sparse ? sparse_ : dense_;
    part.push_back(VariableId(places_.size()));
    places_.push_back({variable.sparse, VariableId(part.size() - 1)});
  }
}

std::span<const float> HybridSteps::rates_of(bool sparse, std::span<const float> all,
                                             std::vector<float>& rates) const {
  rates.clear();
  if (all.empty()) return rates;
  for (const VariableId variable : places_.of(sparse)) {
    rates.push_back(all[std::size_t(variable)]);
  }
  return rates;
}

// Only sparse variables have rows.
std::span<const RowSet> HybridSteps::sparse_rows(std::span<const RowSet> rows) {
  rows_.clear();
  for (const RowSet& set : rows) rows_.push_back({places_.there(set.variable), set.ids});
  return rows_;
}

void HybridSteps::begin_step(StepKind kind, std::span<const RowSet> rows,
                             const StepScalars& scalars) {
  StepScalars of_part = scalars;
  of_part.learning_rates = rates_of(false, scalars.learning_rates, dense_rates_);
  dense_->begin_step(kind, {}, of_part);
  of_part.learning_rates = rates_of(true, scalars.learning_rates, sparse_rates_);
  sparse_->begin_step(kind, sparse_rows(rows), of_part);
}

StepHandle& HybridSteps::end_step(float clip_scale, std::span<const RowSet> next_rows) {
  handle_.of_ps = &sparse_->end_step(clip_scale, sparse_rows(next_rows));
  handle_.of_members = &dense_->end_step(clip_scale, {});
  return handle_;
}

std::int64_t HybridSteps::Handle::global_step() {
  of_members->global_step();
  return of_ps->global_step();
}

}  // namespace paceline
