#include "paceline/hooks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "base/printed.h"
#include "params/interval_timer.h"
#include "train/session_inside.h"

namespace paceline {

using SteadyClock = std::chrono::steady_clock;

// A terminal's line is renewed more often than lines are added to a file.
constexpr std::chrono::milliseconds kTerminalEvery{250};

struct Progress::State {
  std::chrono::milliseconds every;
  std::int64_t own_steps;
  std::optional<SteadyClock::time_point> begun_first = {};  // when the first run began
  SteadyClock::time_point begun = {}, last = {};
  std::int64_t first_step = 0, first_global_step = 0;  // when this run began

  std::string line(const RunOptions& run, const StepResult& result) const;
  std::string time_left(const RunOptions& run, const StepResult& result, double seconds) const;
};

Progress::Progress(std::chrono::milliseconds every, std::int64_t own_steps) {
  const auto shown_every = isatty(STDOUT_FILENO) == 1 ? kTerminalEvery : every;
  state_ = std::make_unique<State>(State{.every = shown_every, .own_steps = own_steps});
}

Progress::~Progress() = default;
Progress::Progress(Progress&&) noexcept = default;

void Progress::begin(Session& session) {
  state_->begun = state_->last = SteadyClock::now();
  if (!state_->begun_first) state_->begun_first = state_->begun;
  state_->first_step = session.last_step().step;
  state_->first_global_step = session.last_step().global_step;
}

bool Progress::after_step(Session& session, const StepResult& result) {
  const auto now = SteadyClock::now();
  if (now - state_->last < state_->every) return true;
  state_->last = now;
  SessionInside(session).print_progress(state_->line(session.run_options(), result));
  return true;
}

std::string Progress::State::line(const RunOptions& run, const StepResult& result) const {
  const double seconds = std::chrono::duration<double>(last - begun).count();
  const double speed = double(result.step - first_step) / seconds;
  return fmt::format("step {} loss {:.4f} {:.2f} steps/s{}", result.global_step,
                     printed(result.loss), speed, time_left(run, result, seconds));
}

std::string Progress::State::time_left(const RunOptions& run, const StepResult& result,
                                       double seconds) const {
  double left = -1;
  const auto made = double(result.global_step - first_global_step);
  if (own_steps > 0) {
    left = double(own_steps - result.step) * seconds / double(result.step - first_step);
  }
  if (run.seconds) left = *run.seconds - std::chrono::duration<double>(last - *begun_first).count();
  if (run.steps && made > 0) left = double(*run.steps - result.global_step) * seconds / made;
  return left >= 0 ? fmt::format(" {:.0f} s left", left) : "";
}

SaveEvery::SaveEvery(Interval every)
    : due_(std::make_unique<IntervalTimer>(every, SteadyClock::now())) {}
SaveEvery::~SaveEvery() = default;
SaveEvery::SaveEvery(SaveEvery&&) noexcept = default;

void SaveEvery::begin(Session& session) {
  due_->begin(session.last_step().global_step, SteadyClock::now());
}

// A save that cannot begin yet stays due.
bool SaveEvery::after_step(Session& session, const StepResult& result) {
  const auto now = SteadyClock::now();
  if (due_->at(result.global_step, now) && SessionInside(session).begin_save()) {
    due_->begin(result.global_step, now);
  }
  return true;
}

StepCounter::StepCounter(Interval print_every)
    : due_(std::make_unique<IntervalTimer>(print_every, SteadyClock::now())) {}
StepCounter::~StepCounter() = default;
StepCounter::StepCounter(StepCounter&&) noexcept = default;

void StepCounter::begin(Session& session) {
  printed_step_ = session.last_step().global_step;
  printed_ = SteadyClock::now();
  due_->begin(printed_step_, printed_);
}

bool StepCounter::after_step(Session& session, const StepResult& result) {
  ++steps_;
  const auto now = SteadyClock::now();
  if (!due_->at(result.global_step, now)) return true;
  const double seconds = std::chrono::duration<double>(now - printed_).count();
  session.print(
      fmt::format("global_step/sec: {:.4g}", double(result.global_step - printed_step_) / seconds));
  printed_step_ = result.global_step;
  printed_ = now;
  due_->begin(result.global_step, now);
  return true;
}

EvaluateEvery::EvaluateEvery(Interval every, Function evaluate, EvaluateOn on)
    : due_(std::make_unique<IntervalTimer>(every, SteadyClock::now())),
      evaluate_(std::move(evaluate)),
      on_(on) {}
EvaluateEvery::~EvaluateEvery() = default;
EvaluateEvery::EvaluateEvery(EvaluateEvery&&) noexcept = default;

void EvaluateEvery::begin(Session& session) {
  due_->begin(session.last_step().global_step, SteadyClock::now());
}

bool EvaluateEvery::after_step(Session& session, const StepResult& result) {
  const auto now = SteadyClock::now();
  const bool here = on_ == EvaluateOn::kEveryWorker || session.cluster().is_chief();
  if (!here || !due_->at(result.global_step, now)) return true;
  due_->begin(result.global_step, now);
  const bool go_on = evaluate_(session, result);
  if (!go_on && on_ == EvaluateOn::kChief) session.stop_all();
  return go_on;
}

}  // namespace paceline
