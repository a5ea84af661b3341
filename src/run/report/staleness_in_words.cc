#include "run/report/staleness_in_words.h"

#include <fmt/format.h>

#include "base/printed.h"
#include "run/report/report_strategy.h"

namespace paceline {
namespace {

constexpr double kHigh = 1;

// Each worker's staleness counts in proportion to its steps.
double mean_staleness(const Report& run) {
  double steps = 0, updates = 0;
  for (const TaskReport& task : run.tasks) {
    if (!task.staleness_mean) continue;
    steps += double(task.steps);
    updates += double(task.steps) * *task.staleness_mean;
  }
  return steps > 0 ? updates / steps : 0;
}

// Returns "2 of worker:0, 1 of worker:1"; empty if all counts are 0.
std::string counts_of(const Report& run, std::optional<std::int64_t> TaskReport::*count) {
  std::string text;
  for (const TaskReport& task : run.tasks) {
    if ((task.*count).value_or(0) == 0) continue;
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", *(task.*count), task.task);
  }
  return text;
}

}  // namespace

std::string high_staleness(const Report& run) {
  const double mean = mean_staleness(run);
  if (mean < kHigh) return "";
  const StrategyKind* const kind = strategy_kind(run);
  const char* const bound = kind != nullptr && kind->limits_lead
                                ? "a lower --staleness"
                                : "--strategy ssp, which lets none run ahead";
  return fmt::format(
      "Its workers computed with values that were {:.1f} updates of others old on average "
      "(staleness). A lower learning rate helps, or fewer workers, or {}.",
      mean, bound);
}

std::string stale_end(const Report& run) {
  if (!run.loss_begin || !run.loss_end || !is_above(*run.loss_end, *run.loss_begin)) return "";
  const std::string why = high_staleness(run);
  if (why.empty()) return "";
  return fmt::format("The loss ended above where it began, at {:.6g}. {}",
                     printed(run.loss_end->mean), why);
}

std::string dropped_end(const Report& run) {
  const std::string text = counts_of(run, &TaskReport::dropped);
  if (text.empty()) return "";
  return fmt::format("Contributions that came too late for a round to count them were dropped: {}.",
                     text);
}

std::string skipped_end(const Report& run) {
  const std::string text = counts_of(run, &TaskReport::skipped);
  if (text.empty()) return "";
  return fmt::format("Contributions with NaN or infinity were left out (--on-nan skip): {}.", text);
}

}  // namespace paceline
