// The state of a session: its parts, in the order in which they need one another.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/failure_text.h"
#include "graph/open_graph.h"
#include "paceline/hooks.h"
#include "paceline/session.h"
#include "paceline/tensor.h"
#include "run/report/report.h"
#include "trace/use_meter.h"
#include "train/console.h"
#include "train/device_context.h"
#include "train/learning_rates.h"
#include "train/session_job.h"
#include "train/session_observers.h"
#include "train/session_saving.h"
#include "train/session_towers.h"
#include "train/step_details.h"
#include "train/step_meter.h"
#include "train/train_limit.h"
#include "train/train_loop.h"
#include "train/usual_sizes.h"

namespace paceline {

/// The values of a session that was not started: zeros. Open dimensions have their usual size, or 1
/// if they have none.
class UnstartedValues {
 public:
  /// The views are valid until the next call for the same graph.
  std::span<const TensorView> of(const Graph& graph, std::span<const Value> fetches) {
    Zeros& zeros = by_graph_[&graph];
    zeros = {};
    for (const Value& value : fetches) {
      OpenSizes sizes = graph.usual_sizes();
      for (std::string& name : open_names(std::span(&value, 1))) sizes.emplace(std::move(name), 1);
      zeros.tensors.emplace_back(value.dtype(), sized(value.shape(), sizes));
    }
    for (const Tensor& tensor : zeros.tensors) zeros.views.push_back(tensor.view());
    return zeros.views;
  }

 private:
  struct Zeros {
    std::vector<Tensor> tensors;
    std::vector<TensorView> views;
  };
  std::map<const Graph*, Zeros> by_graph_;
};

class Session::Impl {
 public:
  /// `graphs` are the graphs of the trainings, or one graph without a training.
  Impl(std::vector<Training> trainings, std::vector<const Graph*> graphs, const Cluster& cluster,
       const RunOptions& run, const SessionOptions& options, std::unique_ptr<UsualSizes> usual,
       SessionObservers observers);
  ~Impl();

  /// False when an observer wanted no more than the plan. The session then counts as ended, and of
  /// the parts below that are pointers only `usual` exists.
  bool started() const { return observers.let_start(); }
  /// Returns the variables of the job, or those of the graphs when the session was not started.
  std::vector<VariableSpec> variables() const;
  /// Throws kNotFound for a name that no variable has.
  VariableId variable_of(std::string_view name) const;
  const StepResult& last_step() const;

  /// Calls `part`. An exception that `part` throws, other than JobIsOver, becomes the session's
  /// error in the report, and is thrown on.
  template <typename F>
  auto guarded(F&& part);

  /// Lets `by` change the states of some variables, which the store then has. Throws
  /// kFailedPrecondition in a job of several tasks.
  void change_variables(std::span<const VariableId> ids,
                        const std::function<void(std::vector<VariableState>&)>& by);

  // Steps.
  void begin_run(Session& session);
  /// Makes a step. Returns false when none was made. Ends the run when it goes no further. A step
  /// that waits for other tasks when the user interrupts the job is given up, and what was finished
  /// before it is saved.
  bool make_step(Session& session, std::size_t training, const std::function<void(Feed&)>& feed,
                 bool look_ahead);
  void end_run(Session& session, bool for_good);
  /// Ends the run of a program that made its steps one at a time and makes no more. Throws nothing.
  void close(Session& session) noexcept;
  /// Measures and writes what is left of the session at its end; a second call does nothing.
  void finish();
  /// Leaves the job. After that, only the memory of its values can still be read.
  void leave();
  /// Throws kFailedPrecondition unless there is one training.
  void check_one_training() const;

  // Evaluations.
  void refresh_snapshot(EvaluateWith with);
  /// Brings the newest values into a snapshot. Returns the checkpoint that has these values; null:
  /// no checkpoint has them.
  std::shared_ptr<EvaluatedCheckpoint> take_newest(VariableSnapshot& snapshot, EvaluateWith with);
  /// Brings the values of a checkpoint into a snapshot (RunOptions::init_from lists its possible
  /// names).
  void take_from(const std::string& checkpoint, VariableSnapshot& snapshot, EvaluateWith with);
  /// Takes a number from the program, about the checkpoint that was evaluated last, or about the
  /// present values.
  void note_number(const std::string& tag, double value);
  std::span<const TensorView> read_values(StepKind kind, const Graph& graph,
                                          std::span<const Value> fetches,
                                          const std::function<void(Feed&)>& feed, Mode mode);
  /// Calls `part`. Its time, in which the session's thread evaluates, belongs to no step, and
  /// neither does what the device does in it.
  template <typename F>
  auto excluded(F&& part);
  std::int64_t own_steps() const { return loop != nullptr ? loop->last().step : 0; }

  /// Returns the contexts of all towers in their order, or the context of the only device.
  std::vector<DeviceContext*> contexts() const;

  /// If the user has interrupted the job, saves, leaves the job, and throws kCancelled.
  void check_interrupt();

  // Reports.
  void fail(const std::string& message);
  /// Returns the report as if the run ended now.
  Report report_so_far() const;
  /// Reports this task's progress to tasks that watch, once a second; with `anyway`, at once.
  void tell_progress(bool anyway = false);

  /// Begins to measure the use of the machine, with the task's first step.
  void start_use();

  // Declared in the order in which they are made; the later ones borrow the earlier ones.
  const std::vector<Training> trainings;
  std::vector<const Graph*> graphs;  // those that are trained come first
  // The number of graphs that are trained.
  const std::size_t trained_graphs;
  const Cluster cluster;
  const RunOptions run_options;
  SessionOptions options;
  const std::unique_ptr<UsualSizes> usual;
  const Console console;
  const std::thread::id thread = std::this_thread::get_id();  // the session's thread
  RealClock clock;
  std::map<std::string, double> summarised;  // by tag, the last number that the program gave
  Report report;
  std::unique_ptr<Timeline> timeline;  // null: none was asked for
  KernelMeter kernel_meter{clock};
  std::unique_ptr<Device> device;  // of tower 0, where there are several
  /// The threads for what all towers share; null: the device's threads.
  std::unique_ptr<ThreadPool> all_cores;
  StepAccount account{clock}, evaluation_account{clock};
  ProgressBoard progress;
  std::unique_ptr<SessionJob> job;
  SessionObservers observers;  // Observers may ask the job, from threads of their own.
  std::shared_ptr<const InputNormals> normals;
  RewriteOptions rewrite;
  BatchExamples examples;                  // of one tower
  std::unique_ptr<SessionTowers> towers;   // null: one device trains
  std::unique_ptr<DeviceContext> context;  // of the device that trains, or of tower 0
  // The number of own train steps that were made when the snapshot was read; −1: it is of no step.
  std::int64_t snapshot_step = 0;
  struct Evaluated {
    std::shared_ptr<EvaluatedCheckpoint> checkpoint;
    /// The checkpoint is valid at this own step alone; empty: until the next evaluation.
    std::optional<std::int64_t> until = {};
  };
  Evaluated evaluated;  // the checkpoint to which the program's numbers belong
  /// A training, with the plans and the rates that make its steps.
  struct Trained {
    std::vector<TrainPlans*> plans;  // by tower
    LearningRates rates;
    /// Indices in SessionOptions::watch, in the order of the fetches.
    std::vector<std::size_t> watched;
  };
  std::vector<Trained> trained;
  std::vector<Tensor> watched;  // SessionOptions::watch after the last step
  std::unique_ptr<StepMeter> meter;
  std::unique_ptr<TrainLimit> limit;
  std::shared_ptr<StepDetails> details;  // null: summaries want none
  std::unique_ptr<TrainLoop> loop;       // null: nothing is trained
  TaskPosition restored;
  std::unique_ptr<SessionSaving> saving;
  std::vector<std::unique_ptr<Hook>> hooks;
  UnstartedValues unstarted;

  bool ran = false;
  /// True if hooks have seen the beginning of a run to which the next step belongs.
  bool running = false;
  // True: the last run has ended training, and not only an epoch.
  bool ended = false;
  std::optional<TimePoint> left_run;  // since when no run is under way

 private:
  void check_towers() const;
  ThreadPool& pool();
  void make_parts();
  void make_towers();
  void make_context();
  void make_loop();
  void make_saving();
  Trained make_trained(const Training& training);
  void check_watched() const;
  RewriteOptions make_rewrite() const;

  // The session as its observers see it.
  class Observed;
  void show_to_observers();

  bool step_of_loop(std::size_t training, const std::function<void(Feed&)>& feed, bool look_ahead);
  void add_summaries();
  void say_nothing_to_do();
  bool call_hooks(Session& session);
  void read_watched();

  bool unwinding() const { return std::uncaught_exceptions() > exceptions_; }
  void end_well();
  /// Returns the task's report at the end, if the session has ended well; else what is known by
  /// now.
  TaskReport task_report() const;
  TaskReport measured_task() const;
  std::optional<double> network_bytes_per_s() const;
  void add_links(TaskReport& task, double seconds) const;
  void add_results();
  /// Adds the loop's losses and its global step, if the loop has made a step.
  void add_losses(Report& to) const;
  void write_report();
  void failed_end(const std::string& message) const;
  void write_timeline();
  void print_summary() const;
  /// Returns why no checkpoint was kept as the best; empty: one was, or the run keeps none.
  std::string no_best_end() const;

  UseMeter use_;
  std::optional<StoreAccount> account_before_;  // of the store, when use_ began
  Duration copies_before_{0};                   // Device::copy_time then
  Duration host_ops_before_{0};                 // Device::host_op_time then
  std::int64_t launches_before_ = 0;            // Device::launches then
  std::vector<StoreLink> links_before_;         // the store's links then
  std::optional<TaskReport> task_at_end_;
  bool is_watched_ = false;  // true: an observer wants progress
  bool finished_ = false;
  TimePoint told_progress_{};
  const int exceptions_;  // in flight when the session was made
};

template <typename F>
auto Session::Impl::guarded(F&& part) {
  try {
    return part();
  } catch (const JobIsOver&) {
    throw;
  } catch (const std::exception& error) {
    fail(failure_text(error));
    throw;
  }
}

template <typename F>
auto Session::Impl::excluded(F&& part) {
  struct Exclude {
    Impl& impl;
    TimePoint begun = impl.clock.now();
    Duration copies = impl.device->copy_time(), host_ops = impl.device->host_op_time();
    std::int64_t launches = impl.device->launches();
    ~Exclude() {
      if (!impl.left_run) impl.meter->exclude(impl.clock.now() - begun);
      impl.copies_before_ += impl.device->copy_time() - copies;
      impl.host_ops_before_ += impl.device->host_op_time() - host_ops;
      impl.launches_before_ += impl.device->launches() - launches;
    }
  };
  const Exclude exclude{*this};
  return part();
}

}  // namespace paceline
