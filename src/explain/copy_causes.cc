// Finds time lost by copies between the host's memory and a device's, and by ops that the host
// computes for a device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printed.h"
#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastCopies = 0.15;   // of the time
constexpr double kSlowerCopies = 1.35;  // times as long as those of others

Finding slower_than_others(const RunFacts& facts, const TaskReport& worker, double others_ms) {
  const double own_ms = *worker.copies_ms;
  const double saved = RunFacts::copies(worker) * (1 - others_ms / own_ms);
  return {
      .cause = Limit::kSlowMemory,
      .task = worker.task,
      .sentence = fmt::format("{}'s memory is slow: copies between it and the device take {} "
                              "ms of a step, and those of others {}.",
                              worker.task, rounded(own_ms), rounded(others_ms)),
      .advice = "With memory as near as theirs",
      .gain = facts.in_step() ? RunFacts::gain_without(saved) : facts.gain_without(worker, saved)};
}

}  // namespace

std::vector<Finding> slow_copies(const RunFacts& facts) {
  double least_ms = HUGE_VAL, least = 1;
  for (const TaskReport* const worker : facts.workers()) {
    least_ms = std::min(least_ms, worker->copies_ms.value_or(0));
    least = std::min(least, RunFacts::copies(*worker));
  }
  std::vector<Finding> found;
  for (const TaskReport* const worker : facts.workers()) {
    const bool slower = worker->copies_ms.value_or(0) > kSlowerCopies * least_ms;
    if (!slower || RunFacts::copies(*worker) < kLeastCopies) continue;
    found.push_back(slower_than_others(facts, *worker, least_ms));
  }
  if (least < kLeastCopies) return found;
  const bool one = facts.workers().size() == 1;
  found.push_back(
      {.cause = Limit::kCopies,
       .task = one ? facts.workers().front()->task : "",
       .sentence = fmt::format("Copies between the memory of the host and that of the device{} "
                               "take {} ms of each step, {:.0f}% of the time.",
                               one ? "" : "s", rounded(least_ms), 100 * least),
       .advice = "With copies that take no time, up to",
       .gain = RunFacts::gain_without(least)});
  return found;
}

std::vector<Finding> ops_on_host(const RunFacts& facts) {
  double least_ms = HUGE_VAL, least = 1;
  for (const TaskReport* const worker : facts.workers()) {
    least_ms = std::min(least_ms, worker->host_ops_ms.value_or(0));
    least = std::min(least, RunFacts::host_ops(*worker));
  }
  if (least < kLeastCopies) return {};
  const bool one = facts.workers().size() == 1;
  return {{.cause = Limit::kHostOps,
           .task = one ? facts.workers().front()->task : "",
           .sentence = fmt::format("The host computes ops that the device{} no kernels for: they "
                                   "take {} ms of each step, {:.0f}% of the time. The run names "
                                   "them at its start.",
                                   one ? " has" : "s have", rounded(least_ms), 100 * least),
           .advice = "With kernels that take no time, up to",
           .gain = RunFacts::gain_without(least)}};
}

}  // namespace paceline
