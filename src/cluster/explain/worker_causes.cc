// Causes in the computing of workers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/printed.h"
#include "cluster/explain/causes.h"

namespace paceline {
namespace {

constexpr double kSlower = 1.35;      // than the others
constexpr double kSmallBatch = 8;     // examples
constexpr double kLargerBatch = 8;    // times
constexpr double kMostlyRules = 0.6;  // of a step, whatever the batch

double compute_ms(const TaskReport& worker) {
  return 1e3 * RunFacts::share(worker, "compute") / *worker.steps_per_s;
}

// Whoever waits for a core computes longer.
double undisturbed_ms(const TaskReport& worker) {
  return compute_ms(worker) * (1 - worker.use.pressure.queued.value_or(0));
}

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + std::ptrdiff_t(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

// The share of a step that does not depend on its batch.
double share_of_values(const RunFacts& facts) {
  const double rules = facts.run().value("bound", "rules_share").value_or(0);
  return std::max(rules, facts.mean_transfer() + facts.mean_share("apply"));
}

}  // namespace

std::vector<Finding> slow_devices(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport* const worker : facts.workers()) {
    std::vector<double> others;
    for (const TaskReport* const other : facts.workers()) {
      if (other != worker) others.push_back(undisturbed_ms(*other));
    }
    if (others.empty()) return {};
    const double own = undisturbed_ms(*worker), usual = median(others);
    if (usual <= 0 || own < kSlower * usual) continue;
    const double saved = RunFacts::share(*worker, "compute") * (1 - usual / own);
    found.push_back({.cause = Cause::kSlowDevice,
                     .task = worker->task,
                     .sentence = fmt::format("{}'s device is slow: the kernels of a step take {} "
                                             "ms, and those of others {}.",
                                             worker->task, rounded(own), rounded(usual)),
                     .advice = "With a device like theirs",
                     .gain = facts.gain_without(*worker, saved)});
  }
  return found;
}

std::vector<Finding> small_batch(const RunFacts& facts) {
  const TaskReport& first = *facts.workers().front();
  const double examples = first.examples_per_s.value_or(0) / *first.steps_per_s;
  const double fixed = share_of_values(facts);
  if (examples > kSmallBatch || first.unit == "steps" || fixed < kMostlyRules) return {};
  double all = 0;
  for (const TaskReport* const worker : facts.workers()) {
    all += worker->examples_per_s.value_or(0);
  }
  const double larger = kLargerBatch * examples;
  return {
      {.cause = Cause::kSmallBatch,
       .sentence = fmt::format("The batch is small, {:.0f} {}: {:.0f}% of a step is updates and "
                               "transfers, which take as long whatever the batch.",
                               examples, first.unit, 100 * fixed),
       .advice = fmt::format("--batch {:.0f}", larger),
       .gain = kLargerBatch / (fixed + kLargerBatch * (1 - fixed)),
       .unit = first.unit + "/s",
       .speed = all}};
}

}  // namespace paceline
