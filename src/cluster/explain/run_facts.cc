#include "cluster/explain/run_facts.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr double kMostSaved = 0.98;  // of a step

double own_share(const TaskReport& worker) { return 1 - RunFacts::share(worker, "wait"); }

}  // namespace

RunFacts::RunFacts(const Report& run) : run_(run) {
  for (const TaskReport& task : run.tasks) {
    if (task.is_ps() && task.steps > 0) ps_.push_back(&task);
    if (!task.is_worker() || task.share.empty()) continue;
    if (task.steps_per_s.value_or(0) <= 0) continue;
    workers_.push_back(&task);
    steps_per_s_ += *task.steps_per_s;
    seconds_ = std::max(seconds_, task.seconds.value_or(0));
  }
}

double RunFacts::share(const TaskReport& task, std::string_view activity) {
  const auto found =
      std::ranges::find(task.share, activity, &std::pair<std::string, double>::first);
  return found == task.share.end() ? 0 : found->second;
}

double RunFacts::transfer(const TaskReport& worker) {
  return share(worker, "pull") + share(worker, "push");
}

double RunFacts::copies(const TaskReport& worker) {
  return 1e-3 * worker.copies_ms.value_or(0) * worker.steps_per_s.value_or(0);
}

double RunFacts::mean_share(std::string_view activity) const {
  double sum = 0;
  for (const TaskReport* const worker : workers_) sum += share(*worker, activity);
  return workers_.empty() ? 0 : sum / double(workers_.size());
}

// Each task has measured over a time of its own; the longest tells most.
double RunFacts::busy_cores() const {
  double all = 0, longest = 0;
  for (const TaskReport& task : run_.tasks) {
    if (task.use.seconds <= longest || !task.use.pressure.machine_cores) continue;
    longest = task.use.seconds;
    all = *task.use.pressure.machine_cores;
  }
  return all;
}

double RunFacts::own_cores() const {
  double own = 0;
  for (const TaskReport& task : run_.tasks) own += task.use.cores.value_or(0);
  return std::min(own, busy_cores());
}

double RunFacts::cores_of_others() const {
  return std::clamp(busy_cores() - own_cores(), 0.0, double(cores()));
}

bool RunFacts::in_step() const {
  return run_.strategy == "sync" || run_.strategy == "allreduce" || run_.strategy == "mixed" ||
         (run_.strategy == "local" && workers_.size() > 1);
}

double RunFacts::gain_without(double share_of_step) {
  return 1 / (1 - std::clamp(share_of_step, 0.0, kMostSaved));
}

double RunFacts::gain_without(const TaskReport& worker, double share_of_step) const {
  const double saved = std::clamp(share_of_step, 0.0, kMostSaved);
  if (!in_step()) {
    const double own = *worker.steps_per_s;
    return steps_per_s_ > 0 ? (steps_per_s_ - own + own / (1 - saved)) / steps_per_s_ : 1;
  }
  // The slowest of them sets the pace, and all wait for what comes after it.
  double slowest = 0, then = 0;
  for (const TaskReport* const each : workers_) {
    slowest = std::max(slowest, own_share(*each));
    then = std::max(then, own_share(*each) - (each == &worker ? saved : 0));
  }
  return gain_without(slowest - then);
}

}  // namespace paceline
