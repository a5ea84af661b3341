// Causes in the computing of workers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/printed.h"
#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kSlower = 1.35;                            // times the kernels' time of the others
constexpr double kFewerSteps = 0.9;                         // times the speed of the others
constexpr double kMostlyComputes = 0.5, kLongerWait = 0.2;  // of the time
constexpr const char* kLikeOthers = "With a device like theirs";
constexpr double kSmallBatch = 8;        // examples
constexpr double kLargerBatch = 8;       // times
constexpr double kMostlyRules = 0.6;     // of a step, whatever the batch
constexpr double kMostlyLaunches = 0.5;  // of the time
// The time of a launch, however little the kernel computes. It is an assumption: reports do not
// have it, and `paceline roof --device` has not measured a GPU yet.
constexpr double kLaunchMs = 5e-3;

double compute_ms(const TaskReport& worker) {
  return 1e3 * RunFacts::share(worker, "compute") / *worker.steps_per_s;
}

// Returns how long a step computes without disturbance: a thread that waits for a core computes
// longer, and a device does not compute while it copies.
double undisturbed_ms(const TaskReport& worker) {
  const double waited = 1e3 * worker.use.pressure.waited.value_or(0) / *worker.steps_per_s;
  return std::max(0.0, compute_ms(worker) - waited - worker.copies_ms.value_or(0));
}

// Returns the share of a step that does not depend on the size of its batch.
double share_of_values(const RunFacts& facts) {
  const double rules = facts.run().value("bound", "rules_share").value_or(0);
  return std::max(rules, facts.mean_transfer() + facts.mean_share("apply"));
}

double launches_ms(const TaskReport& worker) { return kLaunchMs * worker.launches.value_or(0); }

// Returns the share of a worker's time that launches take, at most the time that neither copies nor
// ops on the host take.
double share_of_launches(const TaskReport& worker) {
  const double left = 1 - RunFacts::copies(worker) - RunFacts::host_ops(worker);
  return std::min(left, 1e-3 * launches_ms(worker) * *worker.steps_per_s);
}

// Turns a finding into one whose cure is a batch of kLargerBatch times the examples, with which a
// step takes `longer` times as long.
Finding cured_by_batch(Finding finding, const RunFacts& facts, double longer) {
  const TaskReport& first = *facts.workers().front();
  const double examples = first.examples_per_s.value_or(0) / *first.steps_per_s;
  finding.advice = fmt::format("--batch {:.0f}", kLargerBatch * examples);
  finding.gain = kLargerBatch / longer;
  finding.unit = first.unit + "/s";
  finding.speed = 0;
  for (const TaskReport* const worker : facts.workers()) {
    finding.speed += worker->examples_per_s.value_or(0);
  }
  return finding;
}

// Returns how much longer a step with kLargerBatch times the examples takes, of which this share
// stays as it is.
double longer_by_share(double fixed) { return 1 + (kLargerBatch - 1) * (1 - fixed); }

// In rounds, a device with its own queue computes while its worker already waits for the others, so
// the times show only the device that all wait for.
std::vector<Finding> awaited_device(const RunFacts& facts) {
  const auto wait = [](const TaskReport* worker) { return RunFacts::share(*worker, "wait"); };
  const TaskReport& slowest = **std::ranges::min_element(facts.workers(), {}, wait);
  double others = 1;
  for (const TaskReport* const each : facts.workers()) {
    if (each != &slowest) others = std::min(others, wait(each));
  }
  const double computes = undisturbed_ms(slowest) * *slowest.steps_per_s * 1e-3;
  const double saved = std::min(computes, others - wait(&slowest));
  const auto& expected = facts.run().expected;
  if (computes < kMostlyComputes || saved < kLongerWait || !expected) return {};
  // The worker that all wait for need not have a slow device: all may be slower than expected, or
  // the prediction may already include its slowness.
  const bool known = expected->limit.starts_with(slowest.task + ",");
  const double most = known ? HUGE_VAL : expected->steps_per_s / facts.steps_per_s();
  const double gain = std::min(RunFacts::gain_without(saved), most);
  if (gain < kSlower) return {};
  return {{.cause = Limit::kStraggler,
           .task = slowest.task,
           .sentence = fmt::format("{}'s device is slow: it computes {:.0f}% of the time, while "
                                   "others wait {:.0f}% of it.",
                                   slowest.task, 100 * computes, 100 * others),
           .advice = kLikeOthers,
           .gain = gain}};
}

}  // namespace

std::vector<Finding> slow_devices(const RunFacts& facts) {
  if (facts.workers().size() < 2) return {};
  if (facts.in_step()) return awaited_device(facts);
  std::vector<double> all_ms, all_speeds;
  for (const TaskReport* const worker : facts.workers()) {
    all_ms.push_back(undisturbed_ms(*worker));
    all_speeds.push_back(*worker->steps_per_s);
  }
  const Others ms(std::move(all_ms)), speeds(std::move(all_speeds));
  std::vector<Finding> found;
  for (const TaskReport* const worker : facts.workers()) {
    const double own = undisturbed_ms(*worker), usual = ms.median(own);
    // Other workers may compute while they wait for values, and then make fewer steps than this
    // one.
    const double speed = *worker->steps_per_s;
    const bool slower = speed < kFewerSteps * speeds.median(speed);
    if (usual <= 0 || own < kSlower * usual || !slower) continue;
    const double saved = RunFacts::share(*worker, "compute") * (1 - usual / own);
    found.push_back({.cause = Limit::kStraggler,
                     .task = worker->task,
                     .sentence = fmt::format("{}'s device is slow: the kernels of a step take {} "
                                             "ms, and those of others {}.",
                                             worker->task, rounded(own), rounded(usual)),
                     .advice = kLikeOthers,
                     .gain = facts.gain_without(*worker, saved)});
  }
  return found;
}

// Returns how much longer a step with kLargerBatch times the examples takes. Kernels of a small
// batch take longer than their FLOPs need, so a few more examples cost hardly anything; further
// examples take the time that their FLOPs need at the pace of a large batch.
double longer_step(const RunFacts& facts, double fixed) {
  constexpr double kReached = 0.8;  // of the roof
  const auto bound = facts.run().value("bound", "steps_per_s");
  const auto rules = facts.run().value("bound", "rules_share");
  const double by_share = longer_by_share(fixed);
  if (!bound || !rules || *bound <= 0) return by_share;
  const double of_flops =
      (1 - *rules) * facts.steps_per_s() / (*bound * double(facts.workers().size()));
  return std::min(by_share, 1 + (kLargerBatch - 1) * of_flops / kReached);
}

std::vector<Finding> small_batch(const RunFacts& facts) {
  const TaskReport& first = *facts.workers().front();
  const double examples = first.examples_per_s.value_or(0) / *first.steps_per_s;
  const double fixed = share_of_values(facts);
  if (examples > kSmallBatch || first.unit == "steps" || fixed < kMostlyRules) return {};
  return {cured_by_batch(
      {.cause = Limit::kSmallBatch,
       .sentence = fmt::format("The batch is small, {:.0f} {}: {:.0f}% of a step is updates and "
                               "transfers, which take as long whatever the batch.",
                               examples, first.unit, 100 * fixed)},
      facts, longer_step(facts, fixed))};
}

std::vector<Finding> many_launches(const RunFacts& facts) {
  const TaskReport& least = **std::ranges::min_element(
      facts.workers(), {}, [](const TaskReport* worker) { return share_of_launches(*worker); });
  const double share = share_of_launches(least);
  if (share < kMostlyLaunches) return {};
  const bool one = facts.workers().size() == 1;
  Finding found = {
      .cause = Limit::kLaunches,
      .task = one ? least.task : "",
      .sentence = fmt::format("A step launches {} kernels{}, which takes as long whatever the "
                              "batch: at some {:.0f} µs each, {:.0f}% of the time.",
                              rounded(*least.launches, 3), one ? "" : " on each device",
                              1e3 * kLaunchMs, 100 * share),
      .advice = "With fewer kernels that each compute more, up to",
      .gain = RunFacts::gain_without(share)};
  if (least.unit == "steps") return {found};
  return {cured_by_batch(std::move(found), facts, longer_by_share(share))};
}

}  // namespace paceline
