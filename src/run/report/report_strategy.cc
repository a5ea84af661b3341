#include "run/report/report_strategy.h"

#include <algorithm>

#include "params/strategy/strategies.h"
#include "params/strategy/strategy_fields.h"

namespace paceline {

const StrategyKind* strategy_kind(const Report& run) {
  const auto ps = std::ranges::count_if(run.tasks, &TaskReport::is_ps);
  const auto workers = std::ranges::count_if(run.tasks, &TaskReport::is_worker);
  return find_strategy(run.strategy, kind_of(int(ps), int(workers)));
}

bool in_rounds(const Report& run) {
  const StrategyKind* const kind = strategy_kind(run);
  return kind != nullptr && kind->in_rounds(strategy_of(run.strategy, run.flags));
}

}  // namespace paceline
