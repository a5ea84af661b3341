#include <future>
#include <optional>
#include <utility>

#include "base/real_clock.h"
#include "paceline/evaluator.h"
#include "params/interval_timer.h"

namespace paceline {

struct EvaluateBeside::State {
  State(Interval every, Function to_call, Done when_done, int on_threads, EvaluateWith what,
        EvaluateOn workers)
      : due(every, kRealClock.now()),
        evaluate(std::move(to_call)),
        done(std::move(when_done)),
        threads(on_threads),
        with(what),
        on(workers) {}
  // The thread of an evaluation uses the evaluator, so the evaluation must end first.
  ~State() {
    if (!under_way.valid()) return;
    evaluator->cancel();
    under_way.wait();
  }

  bool finished() const {
    return under_way.valid() &&
           under_way.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // Waits for the evaluation under way, throws what it threw, and calls `done`. Returns whether
  // training goes on.
  bool finish(Session& session) {
    under_way.get();
    evaluator->report_now();
    const bool go_on = done(session, at);
    if (!go_on && on == EvaluateOn::kChief) session.stop_all();
    return go_on;
  }
  void start(Session& session, const StepResult& result) {
    if (!evaluator) evaluator.emplace(session, threads);
    evaluator->take_values(with);
    at = result;
    due.begin(result.global_step, kRealClock.now());
    under_way = std::async(std::launch::async, [this] { evaluate(*evaluator); });
  }

  IntervalTimer due;
  const Function evaluate;
  const Done done;
  const int threads;
  const EvaluateWith with;
  const EvaluateOn on;
  std::optional<Evaluator> evaluator;
  StepResult at;
  std::future<void> under_way;  // of an evaluation, until `done` is called for it
};

EvaluateBeside::EvaluateBeside(Interval every, Function evaluate, Done done, int threads,
                               EvaluateWith with, EvaluateOn on)
    : state_(std::make_unique<State>(every, std::move(evaluate), std::move(done), threads, with,
                                     on)) {}
EvaluateBeside::~EvaluateBeside() = default;
EvaluateBeside::EvaluateBeside(EvaluateBeside&&) noexcept = default;

void EvaluateBeside::begin(Session& session) {
  state_->due.begin(session.last_step().global_step, kRealClock.now());
}

bool EvaluateBeside::after_step(Session& session, const StepResult& result) {
  if (state_->on == EvaluateOn::kChief && !session.cluster().is_chief()) return true;
  bool go_on = true;
  if (state_->finished()) go_on = state_->finish(session);
  if (go_on && !state_->under_way.valid() && state_->due.at(result.global_step, kRealClock.now())) {
    state_->start(session, result);
  }
  return go_on;
}

// Waits for an evaluation that is under way, and calls `done` once more. The run has ended,
// whatever `done` returns.
void EvaluateBeside::end(Session& session) {
  if (state_->under_way.valid()) state_->finish(session);
}

}  // namespace paceline
