// Hooks: objects that a session calls after every step.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "paceline/session.h"

namespace paceline {

/// A hook sees every step of one session, on the thread that calls Session::run or Session::step.
/// An exception that it throws ends the run. Successive calls of Session::step count as one run.
/// The session owns its hooks.
class Hook {
 public:
  virtual ~Hook() = default;
  /// Called before the first step of each run.
  virtual void begin(Session&) {}
  /// Called after each step. If a hook returns false, training ends: all hooks still see this step,
  /// then Session::run returns false, and Session::ended is true.
  virtual bool after_step(Session& session, const StepResult& result) = 0;
  /// Called by Session::summarise, with its arguments.
  virtual void summarised(Session& /*session*/, const std::string& /*tag*/, double /*value*/) {}
  /// Called when the run has ended, unless the run threw.
  virtual void end(Session&) {}
};

/// Ends training when a global step is reached. The step is absolute, like `last_step` of
/// StopAtStepHook in TensorFlow.
class StopAtStep : public Hook {
 public:
  /// `last_step` is a global step, which counts the steps of all workers.
  explicit StopAtStep(std::int64_t last_step) : last_step_(last_step) {}
  bool after_step(Session&, const StepResult& result) override {
    return result.global_step < last_step_;
  }

 private:
  std::int64_t last_step_;
};

/// Begins a checkpoint at an interval: SaveEvery{60s}, SaveEvery{1000}. The chief writes the
/// checkpoint to RunOptions::out, in addition to the checkpoints that RunOptions::save_every asks
/// for.
class SaveEvery : public Hook {
 public:
  /// In steps: saves at the multiples of `every`. A time begins anew with each run.
  explicit SaveEvery(Interval every);
  ~SaveEvery() override;
  SaveEvery(SaveEvery&&) noexcept;  ///< Session::add moves it.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  std::unique_ptr<class IntervalTimer> due_;
};

/// Counts steps, and prints `global_step/sec: 12.5` at an interval.
class StepCounter : public Hook {
 public:
  /// A counter that prints nothing.
  StepCounter() : StepCounter(Interval()) {}
  explicit StepCounter(Interval print_every);  ///< A counter that prints at this interval.
  ~StepCounter() override;
  StepCounter(StepCounter&&) noexcept;  ///< Session::add moves it.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  /// The number of this task's steps that the counter has seen.
  std::int64_t steps() const { return steps_; }

 private:
  std::unique_ptr<class IntervalTimer> due_;
  std::int64_t steps_ = 0, printed_step_ = 0;
  std::chrono::steady_clock::time_point printed_;
};

/// Ends training with an error when the loss is infinite or not a number. The error names the first
/// variable with such a value, and the element, or says that all variables are finite. Hooks that
/// were added after NanGuard do not see that step, and no checkpoint of that step is written. A
/// session has a NanGuard as its first hook, unless SessionOptions::nan_guard is false or
/// TrainOptions::on_nan is not kStop.
class NanGuard : public Hook {
 public:
  bool after_step(Session& session, const StepResult& result) override;
};

/// The workers of a job that evaluate.
enum class EvaluateOn : std::uint8_t {
  /// The chief alone. If its evaluation ends training, all workers end (Session::stop_all).
  kChief,
  /// Each worker. If a worker's evaluation ends training, only that worker ends.
  kEveryWorker,
};

/// Calls a function at an interval, between two steps, for example to evaluate a validation graph.
/// The time that Session::evaluate takes is not part of any step. If the function returns false,
/// training ends. Only the chief calls the function, unless `on` says otherwise.
class EvaluateEvery : public Hook {
 public:
  using Function = std::function<bool(Session&, const StepResult&)>;  ///< False ends training.
  /// In steps: evaluates at the multiples of `every`, as global steps. A time begins anew with each
  /// run.
  EvaluateEvery(Interval every, Function evaluate, EvaluateOn on = EvaluateOn::kChief);
  ~EvaluateEvery() override;
  EvaluateEvery(EvaluateEvery&&) noexcept;  ///< Session::add moves it.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  std::unique_ptr<class IntervalTimer> due_;
  Function evaluate_;
  EvaluateOn on_;
};

/// Prints step, loss, speed and time left: on a terminal one line that is replaced, elsewhere a
/// line every few seconds. Training is expected to end at the steps of RunOptions, else at its
/// seconds, else when this task has made `own_steps` steps. If `own_steps` is 0, that number is not
/// known.
class Progress : public Hook {
 public:
  /// `every` is the time between two lines where standard output is no terminal.
  explicit Progress(std::chrono::milliseconds every = std::chrono::seconds(5),
                    std::int64_t own_steps = 0);
  ~Progress() override;
  /// Session::add moves it.
  Progress(Progress&&) noexcept;
  void begin(Session&) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class StepDetails;

/// Writes an event file (docs/summaries.md) into FOLDER/TASK, such as out/summaries/worker:0. At
/// each interval the hook writes loss, learning rate, speed, the shares of the time, and the
/// numbers that the model gives (SessionOptions::summarise). The chief's file also has the graph,
/// and a histogram of each variable in the first, every 50th and the last summary of a run. The
/// histograms cost a read of all variables from the store. With the session's details
/// (RunOptions::summary_of), the hook also writes gradients, activations and images of the first
/// step, and of one step in each interval. In a step without a summary, the hook only compares
/// numbers. If the file cannot be written, the hook prints one warning, and training goes on.
class Summaries : public Hook {
 public:
  /// Writes to files in `folder`, which is made if it is missing, at the interval `every`. Details
  /// of steps are written if the session has them.
  explicit Summaries(std::string folder, Interval every = 20,
                     std::shared_ptr<StepDetails> details = nullptr);
  ~Summaries() override;
  Summaries(Summaries&&) noexcept;  // Session::add moves it
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  void summarised(Session& session, const std::string& tag, double value) override;
  void end(Session& session) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
