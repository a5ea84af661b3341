#include "params/protocol/value_requests.h"

#include <algorithm>
#include <array>

namespace paceline {

bool must_pull(StepKind kind, Freshness held, const ValueUse& use) {
  if (use.in_place) return false;
  if (kind == StepKind::kEvaluate) return held != Freshness::kWhole;
  if (use.sparse) return false;
  return held != Freshness::kByTraining || (use.trained && !use.updated);
}

bool must_renew_copy(StepKind kind, Freshness held, const ValueUse& use) {
  if (!use.in_place || !use.in_copy) return false;
  return kind == StepKind::kFetch || held != Freshness::kByTraining || !use.updated || use.sparse;
}

Freshness freshness_after(StepKind kind, const ValueUse& use) {
  constexpr std::array kAfter = {Freshness::kByTraining, Freshness::kWhole, Freshness::kByFetch};
  return use.in_place && !use.in_copy ? Freshness::kNothing : kAfter[std::size_t(kind)];
}

std::span<const std::int32_t> ids_of(std::span<const RowSet> sets, VariableId variable) {
  for (const RowSet& set : sets) {
    if (set.variable == variable) return set.ids;
  }
  return {};
}

void RowsAhead::ended(std::int64_t use, std::span<const RowSet> rows) {
  use_ = use;
  for (Asked& asked : asked_) {
    const std::span<const std::int32_t> ids = ids_of(rows, asked.variable);
    asked.ids.assign(ids.begin(), ids.end());
  }
}

bool RowsAhead::on_their_way(const RowSet& rows, std::int64_t use) const {
  const auto asked = std::ranges::find(asked_, rows.variable, &Asked::variable);
  return use == use_ && asked != asked_.end() && std::ranges::equal(asked->ids, rows.ids);
}

}  // namespace paceline
