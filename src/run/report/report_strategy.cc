#include "run/report/report_strategy.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

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

std::vector<std::pair<std::string, std::string>> flags_in(const std::string& way) {
  std::vector<std::pair<std::string, std::string>> flags;
  std::istringstream words(way);
  for (std::string word; words >> word;) {
    if (word.starts_with("--")) {
      flags.emplace_back(word, "");
    } else if (!flags.empty()) {
      flags.back().second = word;
    }
  }
  return flags;
}

const StrategyKind* strategy_kind_of_way(const std::string& way) {
  std::string name;
  int ps = 0, workers = 1;
  for (const auto& [flag, value] : flags_in(way)) {
    if (flag == "--strategy") name = value;
    if (flag == "--ps") ps = std::atoi(value.c_str());
    if (flag == "--workers") workers = std::atoi(value.c_str());
  }
  const ClusterKind cluster = kind_of(ps, workers);
  return name.empty() ? &default_strategy(cluster) : find_strategy(name, cluster);
}

}  // namespace paceline
