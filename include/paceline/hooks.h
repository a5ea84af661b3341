// Hooks: small objects that see every step of a session.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "paceline/session.h"

namespace paceline {

/// Sees every step of one session, on the thread that calls Session::run; what it throws ends the
/// run. Owned by its session.
class Hook {
 public:
  virtual ~Hook() = default;
  /// Before the first step of each Session::run.
  virtual void begin(Session&) {}
  /// After a step; false ends training: all hooks still see this step, then Session::run returns
  /// false.
  virtual bool after_step(Session& session, const StepResult& result) = 0;
  /// Session::summarise was called.
  virtual void summarised(Session& /*session*/, const std::string& /*tag*/, double /*value*/) {}
  /// When that run has ended, unless it threw.
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
