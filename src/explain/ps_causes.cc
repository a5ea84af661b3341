// Causes in the parameter servers.
#include <fmt/format.h>

#include <algorithm>

#include "base/printed.h"
#include "explain/causes.h"
#include "net/link_kind.h"

namespace paceline {
namespace {

constexpr double kLeastForPs = 0.15;  // of the time
constexpr double kBusy = 0.6;
constexpr double kHotter = 1.6;
constexpr double kCoreForPs = 0.5;

double busy(const TaskReport& ps) {
  return RunFacts::share(ps, "apply") + RunFacts::share(ps, "queue");
}

// Returns the work of a ps for one step of a worker, in milliseconds.
double step_ms(const TaskReport& ps) {
  return ps.steps > 0 ? 1e3 * ps.seconds.value_or(0) * busy(ps) / double(ps.steps) : 0;
}

// True if all links are shared memory. Elsewhere frames that arrive slowly count as queued, so that
// a lock does not show.
bool share_memory(const RunFacts& facts) {
  return std::ranges::all_of(facts.workers(), [](const TaskReport* worker) {
    return std::ranges::all_of(
        worker->links, [](const LinkReport& link) { return link_traits(link.kind).shares_memory; });
  });
}

bool cores_are_free(const RunFacts& facts) {
  return facts.busy_cores() <= double(facts.cores()) - kCoreForPs;
}

// True if the ps is busier than others because it keeps more, and most of that is one variable.
bool keeps_one_variable(const RunFacts& facts, const TaskReport& ps) {
  constexpr double kMostly = 0.8;
  if (!ps.kept || ps.kept->largest_bytes < kMostly * ps.kept->bytes) return false;
  return std::ranges::all_of(facts.ps(), [&](const TaskReport* each) {
    return each == &ps || (each->kept && kHotter * each->kept->bytes < ps.kept->bytes);
  });
}

// Returns the gain if another ps of this machine took over a share of a step, limited by the free
// cores. In measurements a second core brought 0.6 to 1.2 of the first one: both share the memory,
// but smaller parts of a variable fit into caches.
double gain_of_sharing(const RunFacts& facts, double saved) {
  const double gain = RunFacts::gain_without(saved), used = facts.busy_cores();
  return used <= 0 ? gain : std::min(gain, std::max(1.0, double(facts.cores()) / used));
}

Finding unsplit(const TaskReport& ps, double others, double gain) {
  return {.cause = Limit::kUnsplit,
          .task = ps.task,
          .sentence =
              fmt::format("{} is busy {:.0f}% of the time, and other parameter servers "
                          "{:.0f}%: it keeps all of {}, {} of its {} MB.",
                          ps.task, 100 * busy(ps), 100 * others, ps.kept->largest,
                          rounded(1e-6 * ps.kept->largest_bytes), rounded(1e-6 * ps.kept->bytes)),
          .advice = "With that variable split, or cut into several",
          .gain = gain};
}

Finding hot_shard(const TaskReport& ps, double others, double gain) {
  return {.cause = Limit::kHotShard,
          .task = ps.task,
          .sentence = fmt::format("{} is busy {:.0f}% of the time, and other parameter servers "
                                  "{:.0f}%: it has the rows that most steps touch.",
                                  ps.task, 100 * busy(ps), 100 * others),
          .advice = "With equal work for all of them (--show-placement names what each has)",
          .gain = gain};
}

// A rule that needs its whole variable runs on all cores, while other contributions wait. So
// another ps helps only as far as cores are free.
Finding locked(const TaskReport& ps, double gain) {
  return {.cause = Limit::kLock,
          .task = ps.task,
          .sentence = fmt::format("Contributions queue {:.0f}% of the time of {}, which applies "
                                  "{:.0f}%: workers update the same variables at the same moment.",
                                  100 * RunFacts::share(ps, "queue"), ps.task,
                                  100 * RunFacts::share(ps, "apply")),
          .advice = "With another ps, or fewer workers",
          .gain = gain};
}

// True if the run is not much slower than predicted, so that the prediction knew the work of the
// ps.
bool was_predicted(const RunFacts& facts) {
  constexpr double kNear = 0.7;
  const auto& expected = facts.run().expected;
  return expected && facts.steps_per_s() > kNear * expected->low;
}

// A second ps helps only on a machine with free cores, unless the predictor knows better. The
// predictor does not know how long a user's own rule takes.
std::optional<Finding> too_few(const RunFacts& facts, const TaskReport& ps, double saved) {
  Finding found{.cause = Limit::kRules,
                .task = ps.task,
                .sentence = fmt::format("{} is busy {:.0f}% of the time, {} ms for each step "
                                        "of a worker.",
                                        ps.task, 100 * busy(ps), rounded(step_ms(ps), 3)),
                .advice = "Another ps",
                .gain = RunFacts::gain_without(saved)};
  if (const auto shape = best_other_shape(facts); shape && was_predicted(facts)) {
    found.advice = shape->flags;
    found.gain = std::min(found.gain, shape->gain);
    return found;
  }
  if (!cores_are_free(facts)) return std::nullopt;
  found.gain = gain_of_sharing(facts, saved);
  return found;
}

}  // namespace

std::vector<Finding> busy_ps(const RunFacts& facts) {
  const double transfer = facts.mean_transfer() + facts.mean_share("wait");
  if (facts.ps().empty() || transfer < kLeastForPs) return {};
  const TaskReport& hottest =
      **std::ranges::max_element(facts.ps(), {}, [](const TaskReport* ps) { return busy(*ps); });
  if (busy(hottest) < kBusy) return {};
  double others = 0;
  for (const TaskReport* const ps : facts.ps()) others += ps == &hottest ? 0 : busy(*ps);
  const std::size_t count = facts.ps().size();
  if (count > 1) others /= double(count - 1);
  const double saved = std::min(transfer, 0.5 * busy(hottest));
  if (count > 1 && busy(hottest) > kHotter * others) {
    const double even = std::min(transfer, (busy(hottest) - others) * (1 - 1.0 / double(count)));
    const auto tell = keeps_one_variable(facts, hottest) ? unsplit : hot_shard;
    return {tell(hottest, others, gain_of_sharing(facts, even))};
  }
  // From this ratio of queueing to applying on, one of two threads always waits for the other.
  constexpr double kMostlyQueue = 0.5;
  const double queue = RunFacts::share(hottest, "queue");
  if (share_memory(facts) && queue > kMostlyQueue * RunFacts::share(hottest, "apply")) {
    return {locked(hottest, gain_of_sharing(facts, saved))};
  }
  if (const auto found = too_few(facts, hottest, saved)) return {*found};
  return {};
}

}  // namespace paceline
