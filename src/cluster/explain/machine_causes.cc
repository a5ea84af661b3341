// Causes that come from the machine: stopped processes, other processes, memory.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cluster/explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastOthers = 0.15;  // cores; the system counts in ticks
constexpr double kLeastQueued = 0.08;  // a share
constexpr double kLeastFaults = 20;    // pages a second
constexpr double kLeastMemoryWait = 0.05;
constexpr const char* kWithoutThat = "Without that";

bool is_worker(const TaskReport& task) { return task.task.starts_with("worker:"); }

// Everybody waits for a parameter server.
double gain_of(const RunFacts& facts, const TaskReport& task, double share) {
  const auto& workers = facts.workers();
  const bool timed = std::ranges::find(workers, &task) != workers.end();
  if (is_worker(task) && timed) return facts.gain_without(task, share);
  return RunFacts::gain_without(share);
}

// The cores that the tasks of the run would use, if each had as many as it could.
double cores_wanted(const RunFacts& facts) {
  double wanted = 0;
  for (const TaskReport& task : facts.run().tasks) {
    const double queued = std::min(0.95, task.use.pressure.queued.value_or(0));
    wanted += task.use.cores.value_or(0) / (1 - queued);
  }
  return wanted;
}

// The share of the time in which a task would wait for a core because of other tasks of the run.
double queued_by_ourselves(const RunFacts& facts) {
  const double wanted = cores_wanted(facts);
  return wanted <= 0 ? 0 : std::max(0.0, 1 - double(facts.cores()) / wanted);
}

// The share of its time that a task would not lose without other processes.
double lost(const RunFacts& facts, const TaskReport& task) {
  const double queued = std::min(0.95, task.use.pressure.queued.value_or(0));
  const double by_others = queued - queued_by_ourselves(facts);
  if (by_others <= 0) return 0;
  // Threads that run at once lose the same time at once.
  const double wanted = task.use.cores.value_or(0) / (1 - queued);
  const double share = by_others * std::min(1.0, wanted);
  return is_worker(task) ? share : std::min(share, facts.mean_transfer());
}

}  // namespace

std::vector<Finding> stopped_tasks(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport& task : facts.run().tasks) {
    const Stops& stops = task.use.pressure.stops;
    if (stops.seconds <= 0 || task.use.seconds <= 0) continue;
    found.push_back(
        {.cause = Cause::kStopped,
         .task = task.task,
         .sentence = fmt::format(
             "{} stood still for {:.1f} s of {:.0f}: a signal or a debugger stopped it, "
             "or its host was frozen.",
             task.task, stops.seconds, task.use.seconds),
         .advice = kWithoutThat,
         .gain = gain_of(facts, task, stops.seconds / task.use.seconds)});
  }
  return found;
}

std::vector<Finding> busy_cores(const RunFacts& facts) {
  const double others = facts.cores_of_others();
  if (others < kLeastOthers) return {};
  std::vector<Finding> found;
  double least = 1, most = 0, share = 1;
  for (const TaskReport& task : facts.run().tasks) {
    const double queued = task.use.pressure.queued.value_or(0);
    if (is_worker(task)) {
      least = std::min(least, queued);
      most = std::max(most, queued);
      share = std::min(share, lost(facts, task));
    }
    if (queued < kLeastQueued) continue;
    found.push_back({.cause = Cause::kOthers,
                     .task = task.task,
                     .sentence = fmt::format(
                         "{} is slow: it waited {:.0f}% of its time for a free core, and other "
                         "processes kept {:.1f} cores busy.",
                         task.task, 100 * queued, others),
                     .advice = kWithoutThat,
                     .gain = gain_of(facts, task, lost(facts, task))});
  }
  constexpr double kAlike = 0.6;
  if (facts.workers().size() < 2 || least < kAlike * most) return found;
  return {{.cause = Cause::kOthers,
           .sentence = fmt::format("Other processes kept {:.1f} of {} cores busy: the workers "
                                   "waited up to {:.0f}% of their time for a free one.",
                                   others, facts.cores(), 100 * most),
           .advice = kWithoutThat,
           .gain = RunFacts::gain_without(share)}};
}

std::vector<Finding> short_memory(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport& task : facts.run().tasks) {
    const Pressure& pressure = task.use.pressure;
    const double wait = pressure.memory_wait.value_or(0),
                 faults = pressure.major_faults.value_or(0);
    if (faults < kLeastFaults || wait < kLeastMemoryWait) continue;
    found.push_back({.cause = Cause::kMemory,
                     .task = task.task,
                     .sentence = fmt::format("{} lacks memory: {:.0f} of its pages a second were "
                                             "read from a disk.",
                                             task.task, faults),
                     .advice = "With enough memory",
                     .gain = gain_of(facts, task, wait)});
  }
  return found;
}

}  // namespace paceline
