// The numbers of a report that causes are told by.
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

/// A number of each task, seen from one of them. Sorts them once, so that a job of thousands of
/// tasks is explained at once. `own` is one of the numbers; where there is no other, it is what is
/// returned.
class Others {
 public:
  explicit Others(std::vector<double> all) : all_(std::move(all)) { std::ranges::sort(all_); }

  double least(double own) const { return beside(own, 0); }
  double most(double own) const { return beside(own, all_.size() < 2 ? 0 : all_.size() - 2); }
  double median(double own) const { return beside(own, all_.empty() ? 0 : (all_.size() - 1) / 2); }

 private:
  // The number at this index once `own` is taken out.
  double beside(double own, std::size_t index) const {
    if (all_.size() < 2) return own;
    return own <= all_[index] ? all_[index + 1] : all_[index];
  }

  std::vector<double> all_;
};

/// A way to distribute that the predictor has compared with that of the run.
struct PredictedShape {
  std::string flags;              // that ask for it
  std::optional<JobShape> shape;  // nothing: this version does not know its strategy
  double steps_per_s = 0;
};

/// A view of a report, which must outlive it.
class RunFacts {
 public:
  explicit RunFacts(const Report& run);

  const Report& run() const { return run_; }
  /// True for a worker whose steps were timed.
  static bool is_timed(const TaskReport& task);
  /// All of these.
  const std::vector<const TaskReport*>& workers() const { return workers_; }
  /// The parameter servers that have applied something.
  const std::vector<const TaskReport*>& ps() const { return ps_; }
  double steps_per_s() const { return steps_per_s_; }
  /// True when the steps took so little time that what the system counts says nothing.
  bool is_short() const { return seconds_ < 0.5; }
  /// The longest time in which the timed steps of a worker were made.
  double seconds() const { return seconds_; }
  int cores() const { return run_.cores.value_or(1); }
  /// True when one command started all tasks, on its machine.
  bool is_on_one_machine() const { return run_.flag_of_other_commands().empty(); }

  /// Returns the share of a task's time that the activity took; 0 when it is not known.
  static double share(const TaskReport& task, std::string_view activity);
  /// The share of a worker's time in which it waits for values or hands contributions over.
  static double transfer(const TaskReport& worker);
  /// The share of a worker's time in which its device copied from and to the host's memory.
  static double copies(const TaskReport& worker);
  static double host_ops(const TaskReport& worker);
  /// The mean over all workers.
  double mean_share(std::string_view activity) const;
  double mean_transfer() const { return mean_share("pull") + mean_share("push"); }
  /// Returns the busy cores of the machine that all tasks run on; 0 when it is not known.
  double busy_cores() const { return busy_cores_; }
  /// The cores that the tasks kept busy, and those that other processes did; 0 while a task has not
  /// reported its use, since its cores would count as those of others.
  double own_cores() const { return std::min(used_cores_, busy_cores_); }
  double cores_of_others() const { return cores_of_others_; }
  /// The time for which tasks of the run stood still, all together, in seconds.
  double stood_still() const;
  /// True when no worker makes more steps than another, since they wait for each other.
  bool in_step() const;
  /// Return the run's own way, if its strategy is known and it was predicted, and the others.
  const std::optional<JobShape>& own_shape() const { return own_shape_; }
  const std::vector<PredictedShape>& other_shapes() const { return other_shapes_; }

  /// Returns how many times as fast the run would be if one worker's own part of a step were
  /// shorter by this share of the step: 1.25 for a quarter faster.
  double gain_without(const TaskReport& worker, double share_of_step) const;
  /// The same, if every worker's step did.
  static double gain_without(double share_of_step);

 private:
  void count_cores();
  void read_shapes();
  bool all_tell_their_use() const;

  const Report& run_;
  std::vector<const TaskReport*> workers_, ps_;
  double steps_per_s_ = 0, seconds_ = 0;
  double busy_cores_ = 0, used_cores_ = 0, cores_of_others_ = 0;
  Others own_shares_{{}};  // of the workers: of a step in which they do not wait for each other
  std::optional<JobShape> own_shape_;
  std::vector<PredictedShape> other_shapes_;
};

}  // namespace paceline
