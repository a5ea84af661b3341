// The parts of a session, in the order in which they need one another.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/failure_text.h"
#include "cluster/report/report.h"
#include "paceline/hooks.h"
#include "paceline/session.h"
#include "params/interval_timer.h"
#include "trace/use_meter.h"
#include "train/job.h"
#include "train/learning_rates.h"
#include "train/normal_table.h"
#include "train/plan_set.h"
#include "train/saver.h"
#include "train/step_feed.h"
#include "train/step_meter.h"
#include "train/train_limit.h"
#include "train/train_loop.h"

namespace paceline {

/// What the view shows now.
Tensor copy_of(const TensorView& view);

class Session::Impl {
 public:
  /// The graphs of the trainings, or one without any.
  Impl(std::vector<Training> trainings, std::vector<const Graph*> graphs, const Cluster& cluster,
       const RunOptions& run, const SessionOptions& options);
  ~Impl();

  bool run(Session& session, const std::function<void(Feed&)>& feed);
  std::optional<StepResult> step(Session& session, int training,
                                 const std::function<void(Feed&)>& feed);
  /// Throws kFailedPrecondition unless there is one training.
  void check_one_training() const;
  void set_learning_rate_factor(double factor);
  bool ended() const { return ended_; }
  /// The program makes no more steps: ends a run that it made step by step. Throws nothing.
  void close(Session& session) noexcept;
  std::span<const TensorView> evaluate(const Graph& graph, std::span<const Value> fetches,
                                       const std::function<void(Feed&)>& feed);
  std::span<const TensorView> fetch(const Graph& graph, std::span<const Value> fetches,
                                    const std::function<void(Feed&)>& feed);
  void begin_evaluation(EvaluateWith with);
  void see_variables(const std::function<void(const std::string&, const Tensor&)>& see);
  void share(const Graph& graph);
  const Tensor& watched(Value value) const;
  void print(const std::string& line, bool progress);
  void finish_training();
  bool begin_save();
  void save();
  Tensor read_variable(std::string_view name);
  /// Calls `part`; what it throws is the session's error, in the report.
  template <typename F>
  auto guarded(F&& part);

  // Declared in the order in which they are made; the later ones borrow the earlier ones.
  std::vector<Training> trainings;
  std::vector<const Graph*> graphs;  // those that are trained come first
  const std::size_t trained_graphs;  // so many of them
  Cluster cluster;
  RunOptions run_options;
  SessionOptions options;
  RealClock clock;
  Report report;
  std::unique_ptr<Timeline> timeline;  // null: none was asked for
  std::unique_ptr<Device> device;
  StepAccount account{clock}, evaluation_account{clock};
  std::unique_ptr<Job> job;
  std::unique_ptr<VariableSnapshot> snapshot;
  std::unique_ptr<PlanSet> plans;
  /// What makes the steps of a training.
  struct Trained {
    PlanSet::TrainPlan plan;
    LearningRates rates;
    std::vector<std::size_t> watched;  // in SessionOptions::watch, in the order of the fetches
  };
  std::vector<Trained> trained;
  std::unique_ptr<StepMeter> meter;
  std::unique_ptr<TrainLimit> limit;
  std::unique_ptr<TrainLoop> loop;
  std::unique_ptr<Saver> saver;  // null: this task begins no checkpoint
  std::vector<std::unique_ptr<Hook>> hooks;
  std::function<void(TaskPosition&)> tell_position;
  TaskPosition restored_position;

 private:
  void make_parts();
  void make_loop();
  Trained make_trained(const Training& training);
  void check_watched() const;
  /// After the hooks of whoever trains, so that these see each step first.
  void add_summaries();
  void restore();
  void make_saver();
  /// Local variables of a graph as they were saved; of one that is not trained, those that are
  /// still the model's.
  void restore_locals(std::size_t graph);
  TaskState own_state();
  void tell_state();
  /// After each step: a checkpoint when it is time, and what others ask for.
  void tend_saving();
  void save_at_end();
  /// When the user has interrupted the job: saves, leaves, and throws kCancelled.
  void check_interrupt();
  /// By the precision that was asked for; says so when it will not be faster.
  RewriteOptions rewrite_options();
  std::vector<VariableSpec> specs() const;
  void fail(const std::string& message);
  void end_well();
  void say_nothing_to_do();
  void begin_run(Session& session);
  /// False when none was made. Ends the run when it goes no further.
  bool make_step(Session& session, std::size_t training, const std::function<void(Feed&)>& feed,
                 bool look_ahead);
  void end_run(Session& session, bool for_good);
  bool unwinding() const { return std::uncaught_exceptions() > exceptions_; }
  bool call_hooks(Session& session);
  void read_watched();
  IntervalTimer save_due_;
  std::int64_t own_steps() const { return loop != nullptr ? loop->last().step : 0; }
  void refresh_snapshot(EvaluateWith with);
  std::span<const TensorView> run_read_plan(StepKind kind, const Graph& graph,
                                            std::span<const Value> fetches,
                                            const std::function<void(Feed&)>& feed);
  /// What is measured of a task while it steps begins with its first step.
  void start_use();
  TaskReport task_report() const;
  void write_report();
  void failed_end(const std::string& message) const;
  void write_timeline();
  void print_summary();

  UseMeter use_;
  std::optional<StoreAccount> account_before_;  // of the links, when use_ began
  NormalTable normals_;
  bool terminal_;
  bool ran_ = false;
  bool running_ = false;  // hooks have seen a run begin, which goes on with the next step
  bool ended_ = false;    // for good, with the last run
  std::vector<Tensor> watched_;
  bool left_out_ = false;              // local variables are too large to be saved, and it was said
  std::optional<TimePoint> left_run_;  // since when no run is under way
  std::int64_t read_steps_ = 0;
  std::int64_t snapshot_step_ = 0;  // own train steps made when the snapshot was read
  int exceptions_;                  // under way when the session was made
};

template <typename F>
auto Session::Impl::guarded(F&& part) {
  try {
    return part();
  } catch (const std::exception& error) {
    fail(failure_text(error));
    throw;
  }
}

}  // namespace paceline
