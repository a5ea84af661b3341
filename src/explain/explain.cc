#include "explain/explain.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "explain/causes.h"

namespace paceline {
namespace {

// A cause from outside comes first if its gain − 1 is at least this share of the largest gain − 1.
constexpr double kMayExplain = 0.5;

bool is_from_outside(Limit cause) {
  return cause == Limit::kOtherProcesses || cause == Limit::kShortMemory;
}

// Returns the least gain for which a cause is named. Tasks that stood still are named however
// little time it cost, and late checkpoints although they cost no speed.
double least_gain(Limit cause) {
  return cause == Limit::kCheckpoints || cause == Limit::kStopped ? 1 : kWorthSaying;
}

}  // namespace

std::vector<Finding> findings_of(const Report& run) {
  const RunFacts facts(run);
  std::vector<Finding> all;
  if (facts.workers().empty() || facts.is_short()) return all;
  for (const auto part : {stopped_tasks, cores_taken_by_others, short_memory, slow_input,
                          slow_links, busy_ps, slow_devices, slow_copies, ops_on_host, small_batch,
                          many_launches, slow_way, slow_checkpoints}) {
    std::ranges::move(part(facts), std::back_inserter(all));
  }
  std::erase_if(all, [](const Finding& each) {
    return !std::isfinite(each.gain) || each.gain < least_gain(each.cause);
  });
  std::ranges::stable_sort(all, std::ranges::greater(), &Finding::gain);
  // Large causes from outside the run come first, since they show in other numbers, too.
  const double most = all.empty() ? 1 : all.front().gain;
  std::stable_partition(all.begin(), all.end(), [&](const Finding& each) {
    return is_from_outside(each.cause) && each.gain - 1 >= kMayExplain * (most - 1);
  });
  // All tasks wait for one that stands still, so its stop shows in all numbers and comes first.
  std::stable_partition(all.begin(), all.end(),
                        [](const Finding& each) { return each.cause == Limit::kStopped; });
  return all;
}

Finding explain(const Report& run) {
  std::vector<Finding> all = findings_of(run);
  return all.empty() ? no_cause(RunFacts(run)) : all.front();
}

std::string explanation(const Report& run) {
  return explain(run).text(RunFacts(run).steps_per_s());
}

}  // namespace paceline
