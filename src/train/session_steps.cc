// How a session makes steps: in a loop, or one at a time.
#include <fmt/format.h>

#include <utility>

#include "base/copy_bytes.h"
#include "base/failure_text.h"
#include "paceline/error.h"
#include "paceline/summaries.h"
#include "train/session_impl.h"

namespace paceline {

bool Session::Impl::run(Session& session, const std::function<void(Feed&)>& feed) {
  if (running_) end_run(session, false);
  begin_run(session);
  while (running_) make_step(session, 0, feed, true);
  return !ended_;
}

std::optional<StepResult> Session::Impl::step(Session& session, int training,
                                              const std::function<void(Feed&)>& feed) {
  if (training < 0 || std::size_t(training) >= trained.size()) {
    throw Error(
        trained.empty() ? ErrorCode::kFailedPrecondition : ErrorCode::kInvalidArgument,
        fmt::format("[session] there is no training {}: it has {}", training, trained.size()));
  }
  if (ended_) return std::nullopt;
  if (!running_) begin_run(session);
  if (!make_step(session, std::size_t(training), feed, false)) return std::nullopt;
  return loop->last();
}

void Session::Impl::check_one_training() const {
  if (trained.size() == 1) return;
  throw Error(ErrorCode::kFailedPrecondition,
              trained.empty() ? "[session] made without a training, cannot run"
                              : fmt::format("[session] has {} trainings: step(training, feed) says "
                                            "whose step is made",
                                            trained.size()));
}

void Session::Impl::begin_run(Session& session) {
  if (left_run_) meter->exclude(clock.now() - *left_run_);
  left_run_.reset();
  start_use();
  if (!std::exchange(ran_, true)) add_summaries();
  for (const auto& hook : hooks) hook->begin(session);
  running_ = true;
  ended_ = false;
}

bool Session::Impl::make_step(Session& session, std::size_t training,
                              const std::function<void(Feed&)>& feed, bool look_ahead) {
  running_ = false;  // A run goes no further than what throws here.
  const bool more = limit->go_on(loop->last().global_step);
  if (more) check_interrupt();
  if (!more || !loop->step(feed, training, look_ahead)) {
    end_run(session, !more);
    return false;
  }
  read_watched();
  const bool go_on = call_hooks(session);
  tend_saving();
  loop->end_step();
  running_ = go_on;
  if (!go_on) end_run(session, true);
  return true;
}

void Session::Impl::end_run(Session& session, bool for_good) {
  running_ = false;
  ended_ = for_good;
  if (for_good && loop->steps_made() == 0) say_nothing_to_do();
  for (const auto& hook : hooks) hook->end(session);
  if (for_good) save_at_end();
  left_run_ = clock.now();
}

void Session::Impl::close(Session& session) noexcept {
  if (!running_ || unwinding() || !report.error.empty()) return;
  try {
    guarded([&] { end_run(session, false); });
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

void Session::Impl::add_summaries() {
  if (run_options.out.empty() || run_options.summary_every.never()) return;
  hooks.push_back(
      std::make_unique<Summaries>(run_options.out + "/summaries", run_options.summary_every));
}

void Session::Impl::say_nothing_to_do() {
  const std::string asked =
      run_options.steps ? fmt::format(" (--steps {})", *run_options.steps) : "";
  print(fmt::format("Global step {} is reached{}: there is no step to make",
                    loop->last().global_step, asked),
        false);
}

bool Session::Impl::call_hooks(Session& session) {
  bool go_on = true;
  for (const auto& hook : hooks) go_on = hook->after_step(session, loop->last()) && go_on;
  return go_on;
}

void Session::Impl::read_watched() {
  const Trained& made = trained[std::size_t(loop->last().training)];
  for (std::size_t i = 0; i < made.watched.size(); ++i) {
    const Tensor& to = watched_[made.watched[i]];
    copy_bytes(to.raw(), made.plan.executor->fetched(i).data, to.bytes());
  }
}

}  // namespace paceline
