#include "explain/run_facts.h"

#include <algorithm>
#include <cstdlib>

#include "run/report/report_strategy.h"

namespace paceline {
namespace {

constexpr double kMostSaved = 0.98;  // of a step

double own_share(const TaskReport& worker) { return 1 - RunFacts::share(worker, "wait"); }

}  // namespace

RunFacts::RunFacts(const Report& run) : run_(run) {
  for (const TaskReport& task : run.tasks) {
    if (task.is_ps() && task.steps > 0) ps_.push_back(&task);
    if (!is_timed(task)) continue;
    workers_.push_back(&task);
    steps_per_s_ += *task.steps_per_s;
    seconds_ = std::max(seconds_, task.seconds.value_or(0));
  }
  std::vector<double> own;
  for (const TaskReport* const worker : workers_) own.push_back(own_share(*worker));
  own_shares_ = Others(std::move(own));
  count_cores();
  read_shapes();
}

// A report stores each way as the flags with which a user would ask for it.
void RunFacts::read_shapes() {
  if (!run_.expected) return;
  if (!run_.expected->way.empty()) own_shape_ = shape_of(run_.expected->way);
  for (const auto& [flags, steps_per_s] : run_.expected->other_ways) {
    other_shapes_.push_back({flags, shape_of(flags), steps_per_s});
  }
}

bool RunFacts::is_timed(const TaskReport& task) {
  return task.is_worker() && !task.share.empty() && task.steps_per_s.value_or(0) > 0;
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

double RunFacts::host_ops(const TaskReport& worker) {
  return 1e-3 * worker.host_ops_ms.value_or(0) * worker.steps_per_s.value_or(0);
}

double RunFacts::mean_share(std::string_view activity) const {
  double sum = 0;
  for (const TaskReport* const worker : workers_) sum += share(*worker, activity);
  return workers_.empty() ? 0 : sum / double(workers_.size());
}

// Each task measures its machine over its own time; the measurement over the longest time counts.
void RunFacts::count_cores() {
  double longest = 0;
  for (const TaskReport& task : run_.tasks) {
    used_cores_ += task.use.cores.value_or(0);
    if (task.use.seconds <= longest || !task.use.pressure.machine_cores) continue;
    longest = task.use.seconds;
    busy_cores_ = *task.use.pressure.machine_cores;
  }
  if (!all_tell_their_use()) return;
  cores_of_others_ = std::clamp(busy_cores_ - own_cores(), 0.0, double(cores()));
}

// A killed or stopped task is missing from the report, or no longer reports. An evaluator is in no
// report.
bool RunFacts::all_tell_their_use() const {
  const auto asked = [&](std::string_view flag) {
    const auto given =
        std::ranges::find(run_.flags, flag, &std::pair<std::string, std::string>::first);
    return given == run_.flags.end() ? 0 : std::atoi(given->second.c_str());
  };
  const auto tell = [](const TaskReport& task) { return task.use.seconds > 0; };
  const auto workers = std::ranges::count_if(run_.tasks, &TaskReport::is_worker);
  const auto ps = std::ranges::count_if(run_.tasks, &TaskReport::is_ps);
  const int expected = std::max(asked("--workers"), run_.expected ? run_.expected->workers : 0);
  const bool evaluator = std::ranges::count(run_.flags, "--evaluator",
                                            &std::pair<std::string, std::string>::first) > 0;
  return std::ranges::all_of(run_.tasks, tell) && workers >= expected && ps >= asked("--ps") &&
         !evaluator;
}

double RunFacts::stood_still() const {
  double seconds = 0;
  for (const TaskReport& task : run_.tasks) seconds += task.use.pressure.stops.seconds;
  return seconds;
}

bool RunFacts::in_step() const { return in_rounds(run_); }

double RunFacts::gain_without(double share_of_step) {
  return 1 / (1 - std::clamp(share_of_step, 0.0, kMostSaved));
}

double RunFacts::gain_without(const TaskReport& worker, double share_of_step) const {
  const double saved = std::clamp(share_of_step, 0.0, kMostSaved);
  if (!in_step()) {
    const double own = *worker.steps_per_s;
    return steps_per_s_ > 0 ? (steps_per_s_ - own + own / (1 - saved)) / steps_per_s_ : 1;
  }
  // In rounds, the worker with the largest own share sets the pace. A shorter step of this worker
  // helps only until another worker is the slowest.
  const double own = own_share(worker), others = workers_.size() > 1 ? own_shares_.most(own) : 0;
  return gain_without(std::max(own, others) - std::max(own - saved, others));
}

}  // namespace paceline
