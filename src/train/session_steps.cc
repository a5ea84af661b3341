// The steps of a session: in a loop, or one at a time.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/copy_bytes.h"
#include "base/failure_text.h"
#include "paceline/error.h"
#include "paceline/summaries.h"
#include "train/session_impl.h"

namespace paceline {
namespace {

// The longest time that a wait for the other workers goes on without a look at Ctrl-C.
constexpr Duration kLookForInterruptEvery = std::chrono::milliseconds(250);

}  // namespace

bool Session::run(const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&] {
    impl_->check_one_training();
    if (!started()) return false;
    if (impl_->running) impl_->end_run(*this, false);
    impl_->begin_run(*this);
    while (impl_->running) impl_->make_step(*this, 0, feed, true);
    return !impl_->ended;
  });
}

std::optional<StepResult> Session::step(const std::function<void(Feed&)>& feed) {
  impl_->guarded([&] { impl_->check_one_training(); });
  return step(0, feed);
}

std::optional<StepResult> Session::step(int training, const std::function<void(Feed&)>& feed) {
  return impl_->guarded([&]() -> std::optional<StepResult> {
    const std::size_t trainings = impl_->trainings.size();
    if (training < 0 || std::size_t(training) >= trainings) {
      throw Error(trainings == 0 ? ErrorCode::kFailedPrecondition : ErrorCode::kInvalidArgument,
                  fmt::format("[session] there is no training {}: it has {}", training, trainings));
    }
    if (impl_->ended) return std::nullopt;
    if (!impl_->running) impl_->begin_run(*this);
    if (!impl_->make_step(*this, std::size_t(training), feed, false)) return std::nullopt;
    return impl_->loop->last();
  });
}

bool Session::ended() const { return impl_->ended; }

const StepResult& Session::last_step() const { return impl_->last_step(); }

const TaskPosition& Session::position() const {
  return impl_->loop != nullptr ? impl_->loop->position() : impl_->restored;
}

void Session::set_learning_rate_factor(double factor) {
  for (Impl::Trained& each : impl_->trained) each.rates.set_factor(factor);
}

const Tensor& Session::value(Value watched) const {
  const std::vector<Value>& watch = impl_->options.watch;
  const auto at = std::ranges::find(watch, watched);
  if (at == watch.end()) {
    throw Error(ErrorCode::kNotFound, "[session] '" + watched.name() +
                                          "' is not among the values to watch (SessionOptions)");
  }
  return impl_->watched[std::size_t(at - watch.begin())];
}

void Session::finish_training() {
  if (!started()) return;
  impl_->guarded([&] {
    while (!impl_->job->wait_all_done(Deadline::after(kLookForInterruptEvery))) {
      impl_->check_interrupt();
    }
  });
}

void Session::stop_all() {
  if (started()) impl_->guarded([&] { impl_->job->control().end_training(); });
}

void Session::Impl::check_one_training() const {
  if (trainings.size() == 1) return;
  throw Error(ErrorCode::kFailedPrecondition,
              trainings.empty()
                  ? "[session] made without a training, cannot run"
                  : fmt::format("[session] has {} trainings: step(training, feed) says "
                                "whose step is made",
                                trainings.size()));
}

void Session::Impl::begin_run(Session& session) {
  if (left_run) meter->exclude(clock.now() - *left_run);
  left_run.reset();
  start_use();
  if (!std::exchange(ran, true)) {
    add_summaries();
    observers.tell(&SessionObserver::begins);
  }
  tell_progress(true);
  for (const auto& hook : hooks) hook->begin(session);
  running = true;
  ended = false;
}

bool Session::Impl::step_of_loop(std::size_t training, const std::function<void(Feed&)>& feed,
                                 bool look_ahead) {
  try {
    return loop->step(feed, training, look_ahead);
  } catch (const WaitInterrupted&) {
    check_interrupt();
    throw;
  }
}

bool Session::Impl::make_step(Session& session, std::size_t training,
                              const std::function<void(Feed&)>& feed, bool look_ahead) {
  running = false;  // A run goes no further than what throws here.
  const bool more = limit->go_on(loop->last().global_step);
  if (more) check_interrupt();
  if (!more || !step_of_loop(training, feed, look_ahead)) {
    end_run(session, !more);
    return false;
  }
  read_watched();
  const bool go_on = call_hooks(session);
  saving->tend();
  loop->end_step();
  tell_progress();
  running = go_on;
  if (!go_on) end_run(session, true);
  return true;
}

void Session::Impl::end_run(Session& session, bool for_good) {
  running = false;
  ended = for_good;
  if (for_good && loop->steps_made() == 0) say_nothing_to_do();
  for (const auto& hook : hooks) hook->end(session);
  if (for_good) saving->save_at_end();
  tell_progress(true);
  left_run = clock.now();
}

void Session::Impl::close(Session& session) noexcept {
  if (!running || unwinding() || !report.error.empty()) return;
  try {
    guarded([&] { end_run(session, false); });
  } catch (const std::exception& error) {
    failed_end(failure_text(error));
  }
}

// Summaries follow the hooks of the program, so that those see each step first.
void Session::Impl::add_summaries() {
  if (run_options.out.empty() || run_options.summary_every.never()) return;
  hooks.push_back(std::make_unique<Summaries>(run_options.out + "/summaries",
                                              run_options.summary_every, details));
}

void Session::Impl::say_nothing_to_do() {
  const std::string asked =
      run_options.steps ? fmt::format(" (--steps {})", *run_options.steps) : "";
  console.print(fmt::format("Global step {} is reached{}: there is no step to make",
                            loop->last().global_step, asked));
}

bool Session::Impl::call_hooks(Session& session) {
  bool go_on = true;
  for (const auto& hook : hooks) go_on = hook->after_step(session, loop->last()) && go_on;
  return go_on;
}

void Session::Impl::read_watched() {
  const Trained& made = trained[std::size_t(loop->last().training)];
  for (std::size_t i = 0; i < made.watched.size(); ++i) {
    const Tensor& to = watched[made.watched[i]];
    copy_bytes(to.raw(), made.plans[0].executor->fetched(i).data, to.bytes());
    if (to.dtype() != DType::kFloat32 || to.elements() != 1) continue;
    float& mean = *to.data<float>().data();
    for (std::size_t tower = 1; tower < made.plans.size(); ++tower) {
      mean += *made.plans[tower].executor->fetched(i).as<float>();
    }
    mean /= float(made.plans.size());
  }
}

}  // namespace paceline
