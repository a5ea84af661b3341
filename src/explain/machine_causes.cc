// Causes that come from the machine: stopped processes, other processes, memory.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "explain/causes.h"

namespace paceline {
namespace {

constexpr double kLeastStop = 0.02;    // of the time
constexpr double kLeastOthers = 0.15;  // cores; the system counts in ticks
constexpr double kLeastQueued = 0.08;  // a share
constexpr double kLeastFaults = 20;    // pages a second
constexpr double kLeastMemoryWait = 0.05, kMostWait = 0.95;
constexpr const char* kWithoutThat = "Without that";

// Returns the gain if the task did not lose this share of its time. What a ps loses, all workers
// lose.
double gain_of(const RunFacts& facts, const TaskReport& task, double share) {
  if (RunFacts::is_timed(task)) return facts.gain_without(task, share);
  return RunFacts::gain_without(share);
}

// In rounds, all workers also wait for a worker that stands still.
double gain_of_going_on(const RunFacts& facts, const TaskReport& task, double share) {
  return facts.in_step() ? RunFacts::gain_without(share) : gain_of(facts, task, share);
}

// Returns how many cores the tasks of the run would use if each had as many as it could use.
double cores_wanted(const RunFacts& facts) {
  double wanted = 0;
  for (const TaskReport& task : facts.run().tasks) {
    const double queued = std::min(0.95, task.use.pressure.queued.value_or(0));
    wanted += std::min(double(facts.cores()), task.use.cores.value_or(0) / (1 - queued));
  }
  return wanted;
}

// Returns the share of its time that a task would wait for a core because of other tasks of this
// run.
double queued_by_ourselves(const RunFacts& facts) {
  const double wanted = cores_wanted(facts);
  return wanted <= 0 ? 0 : std::max(0.0, 1 - double(facts.cores()) / wanted);
}

// Returns the share of the time for which a task waited for a core. For a worker only the step
// thread counts, since its other threads delay nobody. For a ps that would use less than one core,
// its threads' wait counts in proportion.
double waited(const TaskReport& task) {
  if (task.is_worker()) return task.use.pressure.waited.value_or(0);
  const double queued = std::min(0.95, task.use.pressure.queued.value_or(0));
  return queued * std::min(1.0, task.use.cores.value_or(0) / (1 - queued));
}

std::string waiting_text(const TaskReport& task) {
  if (task.is_worker()) return fmt::format("{:.0f}% of its time", 100 * waited(task));
  return fmt::format("{:.0f}% of the time in which it had work",
                     100 * task.use.pressure.queued.value_or(0));
}

/// Numbers of the run that tell how much time a task loses to other processes.
struct Crowd {
  explicit Crowd(const RunFacts& facts)
      : others(facts.cores_of_others()),
        queued_by_ourselves(paceline::queued_by_ourselves(facts)),
        transfer(facts.mean_transfer()) {
    for (const TaskReport& task : facts.run().tasks) ours += task.use.cores.value_or(0);
    for (const TaskReport* const worker : facts.workers()) {
      fastest = std::max(fastest, worker->steps_per_s.value_or(0));
    }
  }
  double others, queued_by_ourselves, transfer, ours = 0, fastest = 0;
};

// Returns the share of its time that a task loses to other processes. It is the larger of two
// estimates of their part in the wait: their part of the busy cores, and the part that tasks of the
// run do not explain.
double lost(const Crowd& crowd, const TaskReport& task) {
  if (waited(task) <= 0) return 0;
  const double ours = std::max(0.0, crowd.ours - task.use.cores.value_or(0));
  const double share = waited(task) * std::max(crowd.others / (crowd.others + ours),
                                               1 - crowd.queued_by_ourselves / waited(task));
  return task.is_worker() ? share : std::min(share, crowd.transfer);
}

// Bounds the gain by the fastest speed that the prediction thought possible, since the prediction
// assumes no disturbance from outside. Beyond that, the time of a stopped task may be no loss: in
// rounds, the others may have gone on without it.
double bounded_by_prediction(const RunFacts& facts, double gain) {
  const auto& expected = facts.run().expected;
  if (!expected || facts.steps_per_s() <= 0) return gain;
  if (facts.steps_per_s() > expected->high) return gain;  // the prediction was off
  return std::min(gain, expected->high / facts.steps_per_s());
}

// Returns the gain if a run whose tasks all wait for cores also had the cores that other processes
// keep busy.
double gain_of_their_cores(const RunFacts& facts) {
  constexpr double kAllBusy = 0.95, kAllWait = 0.15;
  for (const TaskReport* const worker : facts.workers()) {
    if (waited(*worker) < kAllWait) return 1;
  }
  const double busy = facts.busy_cores(), own = facts.own_cores();
  return own > 0 && busy > kAllBusy * facts.cores() ? busy / own : 1;
}

void raise_largest(std::vector<Finding>& found, double gain) {
  const auto largest = std::ranges::max_element(found, {}, &Finding::gain);
  if (largest != found.end()) largest->gain = std::max(largest->gain, gain);
}

// Returns the share of the time for which a task waited for memory. The system counts the wait for
// a page as a wait for memory only if the page was used shortly before it was taken away, and else
// as a wait for the disk. The system reads several pages at once.
double memory_wait(const TaskReport& task) {
  constexpr double kPagesAtOnce = 8, kPageBytes = 4096, kMostly = 0.5;
  const Pressure& pressure = task.use.pressure;
  const double of_pages = pressure.major_faults.value_or(0) * kPagesAtOnce * kPageBytes;
  const double of_memory = pressure.memory_wait.value_or(0);
  if (of_pages < kMostly * task.use.disk_read.value_or(0)) return of_memory;
  return std::max(of_memory, std::min(kMostWait, pressure.disk_wait.value_or(0)));
}

// Returns the share of a worker's time by which its steps exceed the usual step. The system takes
// pages away in bursts, and reading them back uses cores, too.
double beyond_usual(const TaskReport& task) {
  if (!task.is_worker()) return 0;
  const double usual = 1e-3 * task.step_ms_p50.value_or(0) * task.steps_per_s.value_or(0);
  return usual > 0 ? std::clamp(1 - usual, 0.0, kMostWait) : 0;
}

// Returns the share of its time that a worker loses compared with the fastest worker; 0 if it does
// not lag behind. A ps delays all workers alike.
double lag(const Crowd& crowd, const TaskReport& task) {
  constexpr double kLags = 0.75;
  const double most = crowd.fastest;
  const double made = task.is_worker() ? task.steps_per_s.value_or(most) : most;
  return made < kLags * most ? 1 - made / most : 0;
}

}  // namespace

std::vector<Finding> stopped_tasks(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport& task : facts.run().tasks) {
    const Stops& stops = task.use.pressure.stops;
    if (task.use.seconds <= 0 || stops.seconds < kLeastStop * task.use.seconds) continue;
    found.push_back(
        {.cause = Limit::kStopped,
         .task = task.task,
         .sentence = fmt::format(
             "{} stood still for {:.1f} s of {:.0f}: a signal or a debugger stopped it, "
             "or its host was frozen.",
             task.task, stops.seconds, task.use.seconds),
         .advice = kWithoutThat,
         .gain = bounded_by_prediction(
             facts, gain_of_going_on(facts, task, stops.seconds / task.use.seconds))});
  }
  return found;
}

std::vector<Finding> cores_taken_by_others(const RunFacts& facts) {
  const double others = facts.cores_of_others();
  if (others < kLeastOthers) return {};
  const Crowd crowd(facts);
  std::vector<Finding> found;
  double least = 1, most = 0, share = 1, best = 1;
  bool one_lags = false;
  for (const TaskReport& task : facts.run().tasks) {
    if (!task.is_worker()) continue;
    least = std::min(least, waited(task));
    most = std::max(most, waited(task));
    share = std::min(share, lost(crowd, task));
    one_lags = one_lags || (lag(crowd, task) > 0 && waited(task) >= kLeastQueued);
  }
  for (const TaskReport& task : facts.run().tasks) {
    // A ps is not named if a worker waits longer for cores, or lags behind: the ps then has to
    // leave the cores to that worker.
    const bool makes_room = waited(task) < most || one_lags;
    if (waited(task) < kLeastQueued || (!task.is_worker() && makes_room)) continue;
    found.push_back(
        {.cause = Limit::kOtherProcesses,
         .task = task.task,
         .sentence = fmt::format("{} is slow: it waited {} for a free core, and other "
                                 "processes kept {:.1f} cores busy.",
                                 task.task, waiting_text(task), others),
         .advice = kWithoutThat,
         .gain = bounded_by_prediction(
             facts, gain_of(facts, task, std::max(lost(crowd, task), lag(crowd, task))))});
    best = std::max(best, found.back().gain);
  }
  constexpr double kAlike = 0.6;
  const bool alike = facts.workers().size() > 1 && least >= kAlike * most;
  const double all = bounded_by_prediction(facts, RunFacts::gain_without(share));
  if (!alike || best > all) {
    raise_largest(found, bounded_by_prediction(facts, gain_of_their_cores(facts)));
    return found;
  }
  return {{.cause = Limit::kOtherProcesses,
           .sentence = fmt::format("Other processes kept {:.1f} of {} cores busy: the workers "
                                   "waited up to {:.0f}% of their time for a free one.",
                                   others, facts.cores(), 100 * most),
           .advice = kWithoutThat,
           .gain = all}};
}

std::vector<Finding> short_memory(const RunFacts& facts) {
  std::vector<Finding> found;
  for (const TaskReport& task : facts.run().tasks) {
    const double wait = memory_wait(task), faults = task.use.pressure.major_faults.value_or(0);
    if (faults < kLeastFaults || wait < kLeastMemoryWait) continue;
    found.push_back({.cause = Limit::kShortMemory,
                     .task = task.task,
                     .sentence = fmt::format("{} lacks memory: {:.0f} of its pages a second were "
                                             "read from a disk.",
                                             task.task, faults),
                     .advice = "With enough memory",
                     .gain = gain_of(facts, task, std::max(wait, beyond_usual(task)))});
  }
  return found;
}

}  // namespace paceline
