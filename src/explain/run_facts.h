// The numbers of a report by which causes are found.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "params/strategy/job_shape.h"
#include "run/report/report.h"

namespace paceline {

/// One number of each task, compared with those of the others. The numbers are sorted once, so that
/// a job of thousands of tasks is explained quickly. `own` is one of the numbers; if it is the only
/// one, the functions return it.
class Others {
 public:
  explicit Others(std::vector<double> all) : all_(std::move(all)) { std::ranges::sort(all_); }

  double least(double own) const { return beside(own, 0); }
  double most(double own) const { return beside(own, all_.size() < 2 ? 0 : all_.size() - 2); }
  double median(double own) const { return beside(own, all_.empty() ? 0 : (all_.size() - 1) / 2); }

 private:
  // Returns the number at this index after `own` is taken out.
  double beside(double own, std::size_t index) const {
    if (all_.size() < 2) return own;
    return own <= all_[index] ? all_[index + 1] : all_[index];
  }

  std::vector<double> all_;
};

/// Another way to distribute the run, which the predictor compared with the run's own.
struct PredictedShape {
  std::string flags;              // the flags that ask for this way
  std::optional<JobShape> shape;  // empty: this version does not know its strategy
  double steps_per_s = 0;
};

/// A view of a report, which must outlive it.
class RunFacts {
 public:
  explicit RunFacts(const Report& run);

  const Report& run() const { return run_; }
  /// True for a worker that has timed steps.
  static bool is_timed(const TaskReport& task);
  /// All workers that have timed steps.
  const std::vector<const TaskReport*>& workers() const { return workers_; }
  /// The parameter servers that have applied something.
  const std::vector<const TaskReport*>& ps() const { return ps_; }
  double steps_per_s() const { return steps_per_s_; }
  /// True if the steps took so little time that the system's counters say nothing.
  bool is_short() const { return seconds_ < 0.5; }
  /// Returns the time of the timed steps, for the worker where they took longest.
  double seconds() const { return seconds_; }
  int cores() const { return run_.cores.value_or(1); }
  /// True if one command started all tasks, on its own machine.
  bool is_on_one_machine() const { return run_.flag_of_other_commands().empty(); }

  /// Returns the share of a task's time that the activity took; 0 if it is not known.
  static double share(const TaskReport& task, std::string_view activity);
  /// Returns the share of a worker's time in which it waits for values or hands over contributions.
  static double transfer(const TaskReport& worker);
  /// Returns the share of a worker's time in which its device copied from or to the host's memory.
  static double copies(const TaskReport& worker);
  static double host_ops(const TaskReport& worker);
  /// Returns the mean of share() over all workers.
  double mean_share(std::string_view activity) const;
  double mean_transfer() const { return mean_share("pull") + mean_share("push"); }
  /// Returns how many cores were busy on the machine that runs all tasks; 0 if it is not known.
  double busy_cores() const { return busy_cores_; }
  /// Return how many cores the tasks kept busy, and how many other processes did. The latter is 0
  /// while a task has not reported its use, since its cores would count as those of others.
  double own_cores() const { return std::min(used_cores_, busy_cores_); }
  double cores_of_others() const { return cores_of_others_; }
  /// Returns the seconds for which tasks of the run stood still, all tasks together.
  double stood_still() const;
  /// True if no worker makes more steps than another, because they wait for each other.
  bool in_step() const;
  /// Return the run's own way, if its strategy is known and it was predicted; and the other ways.
  const std::optional<JobShape>& own_shape() const { return own_shape_; }
  const std::vector<PredictedShape>& other_shapes() const { return other_shapes_; }

  /// Returns how many times as fast the run would be if one worker's own part of a step took this
  /// share of the step less: 1.25 for a gain of a quarter.
  double gain_without(const TaskReport& worker, double share_of_step) const;
  /// Returns the gain if every worker's step took this share less.
  static double gain_without(double share_of_step);

 private:
  void count_cores();
  void read_shapes();
  bool all_tell_their_use() const;

  const Report& run_;
  std::vector<const TaskReport*> workers_, ps_;
  double steps_per_s_ = 0, seconds_ = 0;
  double busy_cores_ = 0, used_cores_ = 0, cores_of_others_ = 0;
  // For each worker: the share of a step in which it does not wait for other workers.
  Others own_shares_{{}};
  std::optional<JobShape> own_shape_;
  std::vector<PredictedShape> other_shapes_;
};

}  // namespace paceline
