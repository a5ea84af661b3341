// The speed that a job is expected to reach, from its graph, its cluster and the roof of this
// machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/real_clock.h"
#include "exec/plan.h"
#include "paceline/cluster.h"
#include "paceline/observer.h"
#include "predict/pace_cache.h"
#include "predict/prediction.h"
#include "predict/prediction_options.h"
#include "predict/roof.h"
#include "predict/shapes_to_try.h"
#include "predict/simulation/step_of_plan.h"
#include "predict/steps_beside.h"

namespace paceline {

/// The step of one worker. Borrows what `request` points to.
struct PredictedStep {
  std::string model;
  PlanRequest request;
  /// The examples in a batch; 0: the first dimension of the inputs tells the number.
  double examples = 0;
  /// The plan of a session that is about to train; null: the predictor makes plans from the
  /// request.
  std::shared_ptr<const Plan> plan = nullptr;
};

/// Says, in a sentence that names the flag, why the time of steps on the cluster's device cannot be
/// known before they run; empty if it can. A device with a roof of its own needs that roof in a
/// file that the options name. Throws kUsage if such a file cannot be read or makes no sense.
std::string why_not_predicted(const Cluster& cluster, const PredictionOptions& options);

class ShapePredictor {
 public:
  /// Reads the files that the options name, and measures this machine's roof unless a file or
  /// `here` gives it. Times some steps if the options want it and no undisturbed ones were timed
  /// before. Throws kUsage if a file cannot be read or makes no sense.
  ShapePredictor(const PredictedStep& step, const Cluster& cluster,
                 const PredictionOptions& options, const std::optional<PredictedHost>& here = {});

  const PredictedJob& job() const { return job_; }
  /// Returns what this machine can do.
  const PredictedHost& here() const { return here_; }
  /// The cluster's own shape; one process if it has none.
  JobShape own_shape() const;
  /// The shapes to compare with the cluster's own; all shapes if the cluster fixes none.
  ShapesAsked asked() const;
  /// Places the tasks of another shape where the cluster's own shape has its tasks, as far as those
  /// suffice. If each task has its own emulated host, each additional task gets another one. If the
  /// number of tasks is open, they are spread over all hosts.
  void place(JobShape& shape) const;
  /// Returns the numbers of copies of this command that should run at once on this machine, before
  /// these shapes are predicted: 2, and the most workers that one of the shapes has on this
  /// machine, but at most one for each core, and no more than its memory holds. Returns none if no
  /// shape has two workers on this machine, or if the step was not made by other code.
  std::vector<int> copies_to_run(std::span<const JobShape> shapes) const;
  /// From now on steps beside others take the time that such copies took.
  void learn_beside(const StepsBeside& beside) { beside_ = beside; }
  /// Returns the seconds that a step of the other code took alone; 0: there is no such code.
  double seconds_alone() const;
  /// Returns lines about the hosts and the step that the predictions assume.
  std::string facts() const;
  /// Says why the time of the step's kernels is not known; empty if the time is known.
  std::string why_not_measured() const;

 private:
  void make_plans();
  void take_hosts();
  void take_hosts_of_file();
  std::vector<std::string> place_tasks();
  void take_hosts_of_cluster(const std::vector<std::string>& names);
  bool each_task_has_a_host() const;
  std::vector<std::string> task_hosts(const std::vector<std::string>& addresses) const;
  const PredictedHost& worker_host() const;
  Cluster with_addresses() const;
  int workers_on_own_machine() const;
  int threads(int workers_on_machine) const;
  DevicePace pace(const Plan& plan, const StepOf& of) const;
  void take_beside(int workers, const Plan& plan, DevicePace& pace) const;
  double kernel_seconds(const Plan& plan, const Roof& roof, const std::optional<Pace>& known) const;
  bool are_threads_told() const;
  void learn_kernels();
  std::vector<Pace> paces_to_time() const;
  void time_kernels(const std::string& key, std::span<const Pace> missing);
  std::string kernels_in_words(const std::optional<Pace>& pace) const;

  const PredictedStep step_;
  const Cluster cluster_;
  const PredictionOptions options_;
  RealClock clock_;
  std::unique_ptr<Device> device_;
  PredictedHost here_;
  PredictedJob job_;
  std::shared_ptr<const Plan> own_, shared_;  // own_: for a worker that applies rules itself
  std::string unknown_pairs_;                 // lines about pairs without known facts
  std::vector<VariableSpec> specs_;
  std::vector<int> ps_hosts_, worker_hosts_;
  int own_hosts_ = 0;  // how many hosts the cluster has; later hosts are spare, for other shapes
  std::vector<Pace> paces_;  // paces of the step's kernels
  bool is_here_ = false;     // the workers are predicted to run on this machine
  StepsBeside beside_;       // empty: not measured
  int timed_ = 0;            // steps timed before this prediction
  std::string untimed_;      // why no step was timed; empty if no timing was asked for
};

/// Prints the table of shapes, each as soon as it is predicted, and the command line of the best
/// shape. Writes the files that the options ask for. Returns the predictions, the fastest first.
std::vector<Prediction> predict_shapes(const PredictedStep& step, const Cluster& cluster,
                                       const PredictionOptions& options);

/// Returns the speeds of the shapes that a job may start with if its flags leave the choice open,
/// the fastest first. Returns none if the job cannot be predicted, because of its device or of
/// batch norm over the whole batch. Uses the cluster's wire type and towers.
std::vector<Prediction> compare_shapes(const PredictedStep& step, const Cluster& cluster,
                                       const PredictionOptions& options);

/// Makes an observer that prints the table of predict_shapes for the first session that trains, and
/// lets no session start.
MakeObserver show_shapes(const PredictionOptions& options);
/// Makes an observer that calls `list` with the speeds of compare_shapes for the first session that
/// trains, and lets no session start. There are no speeds for a session of several trainings.
MakeObserver list_shapes(const PredictionOptions& options,
                         std::function<void(std::vector<Prediction>)> list);

/// The predictions of a run of several tasks, before its first step.
struct RunPrediction {
  Prediction own;
  /// A shape with the same number of workers that would be a tenth faster, or one process if it
  /// would be a little faster; empty if there is none.
  std::optional<Prediction> better;
  std::vector<Prediction> others = {};  // the other shapes that were compared
  PredictedHost machine = {};           // the machine for which the prediction was made
};
/// `here` is this machine, if it was measured already. Takes as long as predicting the job's own
/// shape and one process, and a quarter of a second for other shapes.
RunPrediction predict_run(const PredictedStep& step, const Cluster& cluster,
                          const PredictionOptions& options,
                          const std::optional<PredictedHost>& here);

}  // namespace paceline
