// Words for a run without a cause: nothing holds it back, it was too short or not timed, or the
// cause is not known.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "explain/causes.h"
#include "run/report/activities.h"

namespace paceline {
namespace {

constexpr double kNear = 0.85;      // of the bound
constexpr double kMeasured = 1.02;  // of the bound; noise does not explain more
constexpr double kHalfExpected = 0.5;
constexpr double kLeastWaiting = 0.25;  // of the workers' time
constexpr double kCoresBusy = 0.75;     // the fraction of all cores that the tasks keep busy

// "71% of the time went to kernels"
std::string largest_share(const RunFacts& facts) {
  double most = 0;
  std::string_view words;
  for (const ActivityWords& activity : kActivityWords) {
    const double share = facts.mean_share(activity.name);
    if (share <= most) continue;
    most = share;
    words = activity.sentence;
  }
  return fmt::format("{:.0f}% of the time went to {}", 100 * most, words);
}

// Returns "212 GFLOP/s and 58.1 GB/s would allow 101 steps/s".
std::string bound_text(const Report& run, double allowed) {
  return fmt::format("{:.0f} GFLOP/s and {:.1f} GB/s would allow {} steps/s",
                     run.value("bound", "gflops_per_s").value_or(0),
                     run.value("bound", "gbytes_per_s").value_or(0), rounded(allowed));
}

std::string cores_text(const RunFacts& facts) {
  return facts.cores() == 1 ? "one core" : fmt::format("{} cores", facts.cores());
}

bool workers_wait(const RunFacts& facts) {
  return facts.mean_transfer() + facts.mean_share("wait") > kLeastWaiting;
}

// True if a run has less than half of the lowest speed that was expected and its workers wait, so
// that something must hold it back that no number shows.
bool is_mysterious(const RunFacts& facts) {
  const auto& expected = facts.run().expected;
  return expected && facts.steps_per_s() < kHalfExpected * expected->low && workers_wait(facts);
}

// True if workers wait for tasks that have work to do, while hardly any core is free for that work.
bool waits_for_cores(const RunFacts& facts) {
  return workers_wait(facts) && facts.is_on_one_machine() &&
         facts.own_cores() >= kCoresBusy * facts.cores();
}

// True if workers wait as long as the prediction said; the prediction also says what they wait for.
bool waits_as_predicted(const RunFacts& facts) {
  const auto& expected = facts.run().expected;
  return workers_wait(facts) && expected && !expected->limit.empty() &&
         facts.steps_per_s() >= expected->low;
}

std::string beginning(const RunFacts& facts) {
  if (facts.is_short()) return "Too short to tell what holds it back: ";
  if (!waits_for_cores(facts)) return "Nothing holds it back: ";
  return fmt::format("Nothing holds it back but {}{}, which its tasks keep {:.0f}% busy: ",
                     facts.cores() == 1 ? "" : "the ", cores_text(facts),
                     100 * facts.own_cores() / facts.cores());
}

// Finds a worker that was there all the time but made far fewer steps than others. It made too few
// for timed steps, so no number says where its time went.
std::optional<Finding> untimed_worker(const RunFacts& facts) {
  // Relative to the steps and the time of other workers.
  constexpr double kFew = 0.5, kAllTheTime = 0.5;
  const auto least = std::ranges::min_element(facts.workers(), {}, &TaskReport::steps);
  for (const TaskReport& task : facts.run().tasks) {
    const bool untimed = task.is_worker() && !task.steps_per_s && task.steps > 0;
    const bool was_there = task.use.seconds > kAllTheTime * (*least)->use.seconds;
    if (!untimed || !was_there || double(task.steps) > kFew * double((*least)->steps)) continue;
    return Finding{
        .cause = Limit::kNotKnown,
        .task = task.task,
        .sentence = fmt::format("{} made {} while {} made {}: too few to be timed, so that I "
                                "cannot tell why.",
                                task.task, counted(task.steps, "step"), (*least)->task,
                                grouped_digits((*least)->steps))};
  }
  return std::nullopt;
}

}  // namespace

Finding no_cause(const RunFacts& facts) {
  if (facts.workers().empty()) return {};
  // When a task has failed or the run was short, too few numbers are there to call a run slow.
  const bool whole = facts.run().error.empty() && !facts.is_short();
  if (whole && is_mysterious(facts)) {
    return {.cause = Limit::kNotKnown,
            .sentence = fmt::format("I cannot tell why it is slower than expected: {}, and nothing "
                                    "that was measured says more.",
                                    largest_share(facts))};
  }
  if (const auto untimed = untimed_worker(facts); untimed && whole) return *untimed;
  if (!facts.is_short() && waits_as_predicted(facts) && !waits_for_cores(facts)) {
    return {.sentence = fmt::format("Nothing holds it back beyond what was predicted: {}.",
                                    facts.run().expected->limit)};
  }
  const std::string begin = beginning(facts) + largest_share(facts);
  const auto allowed = facts.run().value("bound", "steps_per_s");
  if (!allowed || *allowed <= 0) return {.sentence = begin + "."};
  const double reached = facts.steps_per_s() / *allowed;
  if (reached < kNear || facts.is_short()) {
    return {.sentence = fmt::format("{}, and it made {:.2f} of what {} can do ({}).", begin,
                                    reached, cores_text(facts), bound_text(facts.run(), *allowed))};
  }
  return {.sentence = fmt::format("Nothing to gain: {:.2f} of what {} can do ({}){}.", reached,
                                  cores_text(facts), bound_text(facts.run(), *allowed),
                                  reached > kMeasured ? ", which other processes shared while "
                                                        "that was measured"
                                                      : "")};
}

}  // namespace paceline
