// Hooks: small objects that see every step of a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "paceline/session.h"

namespace paceline {

/// Sees every step of one session, on the thread that calls Session::run or Session::step; what it
/// throws ends the run. Steps that Session::step makes one after another are one run. Owned by its
/// session.
class Hook {
 public:
  virtual ~Hook() = default;
  /// Before the first step of each run.
  virtual void begin(Session&) {}
  /// After a step; false ends training: all hooks still see this step, then Session::run returns
  /// false, and Session::ended is true.
  virtual bool after_step(Session& session, const StepResult& result) = 0;
  /// Session::summarise was called.
  virtual void summarised(Session& /*session*/, const std::string& /*tag*/, double /*value*/) {}
  /// When the run has ended, unless it threw.
  virtual void end(Session&) {}
};

/// Ends training when the global step is reached (absolute, as last_step of StopAtStepHook).
class StopAtStep : public Hook {
 public:
  /// `last_step`: a global step, of all workers.
  explicit StopAtStep(std::int64_t last_step) : last_step_(last_step) {}
  bool after_step(Session&, const StepResult& result) override {
    return result.global_step < last_step_;
  }

 private:
  std::int64_t last_step_;
};

/// Begins a checkpoint at an interval: SaveEvery{60s}, SaveEvery{1000}. In RunOptions::out, by the
/// chief; beside those that RunOptions::save_every asks for.
class SaveEvery : public Hook {
 public:
  explicit SaveEvery(Interval every);  ///< Counted from where each run begins.
  ~SaveEvery() override;
  SaveEvery(SaveEvery&&) noexcept;  ///< Into Session::add.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  std::unique_ptr<class IntervalTimer> due_;
};

/// Counts steps, and prints `global_step/sec: 12.5` at an interval of them.
class StepCounter : public Hook {
 public:
  /// Prints nothing.
  StepCounter() : StepCounter(Interval()) {}
  explicit StepCounter(Interval print_every);  ///< And prints now and then.
  ~StepCounter() override;
  StepCounter(StepCounter&&) noexcept;  ///< Into Session::add.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  /// Own steps seen.
  std::int64_t steps() const { return steps_; }

 private:
  std::unique_ptr<class IntervalTimer> due_;
  std::int64_t steps_ = 0, printed_step_ = 0;
  std::chrono::steady_clock::time_point printed_;
};

/// Ends training with an error when the loss is infinite or not a number: it names the first
/// variable that holds such a value, and which element. Hooks that come after it do not see that
/// step, and no checkpoint is written of it. Every session begins with one, unless
/// SessionOptions::nan_guard is false.
class NanGuard : public Hook {
 public:
  bool after_step(Session& session, const StepResult& result) override;
};

/// Calls a function at an interval, between two steps: to evaluate a validation graph, say. The
/// time that Session::evaluate takes counts as no step's. False ends training.
class EvaluateEvery : public Hook {
 public:
  using Function = std::function<bool(Session&, const StepResult&)>;  ///< False: enough.
  EvaluateEvery(Interval every, Function evaluate);  ///< Counted from where each run begins.
  ~EvaluateEvery() override;
  EvaluateEvery(EvaluateEvery&&) noexcept;  ///< Into Session::add.
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  std::unique_ptr<class IntervalTimer> due_;
  Function evaluate_;
};

/// Step, loss, speed and time left: one line that renews itself on a terminal, a line every few
/// seconds elsewhere. The time left is that until the steps or seconds of RunOptions, or until this
/// task has made `own_steps` steps; 0: not known.
class Progress : public Hook {
 public:
  /// `every`: time between lines where there is no terminal.
  explicit Progress(std::chrono::milliseconds every = std::chrono::seconds(5),
                    std::int64_t own_steps = 0);
  ~Progress() override;
  /// Moves.
  Progress(Progress&&) noexcept;
  void begin(Session&) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
