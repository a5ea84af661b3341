#include "params/worker/ps_round_fence.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"
#include "params/worker/worker_driver.h"
#include "params/worker/worker_state.h"

namespace paceline {
namespace {

// The others tell within a fraction of this, unless they are lost.
constexpr Duration kOthersTellWithin = std::chrono::milliseconds(100);

}  // namespace

// No ps waits for another worker before it answers.
template <typename Predicate>
void PsRoundFence::wait_for_ps(const char* what, Predicate&& come) {
  WorkerState& core = context_.core;
  std::optional<AccountScope> scope;
  if (core.options().account != nullptr) scope.emplace(*core.options().account, Activity::kWait);
  if (core.wait_for_reply(come)) return;
  core.fail_late(fmt::format("{} of round {} did not come", what, round_), "from the ps tasks");
}

bool PsRoundFence::is_done() const { return context_.core.steps_done >= context_.core.steps_sent; }

void PsRoundFence::others_went_on(std::int64_t round) const {
  throw LeftBehind(
      fmt::format("the others went on without worker:{}: the ps tasks have closed {} rounds, and "
                  "its own group {}",
                  context_.core.options().task.index, context_.core.global_step.load(), round));
}

void PsRoundFence::begin(std::int64_t round) {
  wait_closed();
  round_ = round;
  WorkerState& core = context_.core;
  if (!settled_ || core.global_step < round) {
    context_.driver.await_round(round);
    wait_for_ps("the end", [&] { return core.round_is_open.load(); });
    std::ranges::fill(context_.held, Freshness::kNothing);
    ++context_.uses;
  }
  if (core.global_step != round) others_went_on(round);
  settled_ = true;
}

bool PsRoundFence::lets_others_tell() const {
  return untold_->contributors.size() > 1 &&
         untold_->contributors.front() == context_.core.options().task.index;
}

// The member that has committed first may be lost with its word to the others, who then make the
// step again without it: the ps tasks must not know more than they do. So it lets them tell. It
// tells all the same, since the round may have been closed by the word of yet others.
template <typename Predicate>
void PsRoundFence::tell_commit(Predicate&& known) {
  if (!untold_) return;
  if (lets_others_tell()) context_.core.wait(Deadline::after(kOthersTellWithin), known);
  context_.driver.commit(*untold_);
  untold_.reset();
}

// A contribution that is late is dropped at once, and its step done.
void PsRoundFence::wait_given() {
  committed_.reset();
  wait_for_ps("the receipt", [this] {
    return context_.core.steps_given >= context_.core.steps_sent || is_done();
  });
}

float PsRoundFence::commit(std::span<const std::int32_t> contributors,
                           std::optional<double> squares) {
  committed_ = fingerprint_of(contributors);
  WorkerState& core = context_.core;
  untold_ = {.round = round_,
             .contributors = {contributors.begin(), contributors.end()},
             .squares = squares.value_or(0)};
  if (!lets_others_tell()) tell_commit([] { return false; });  // at once
  if (!squares) return 1;
  const auto has_scale = [&] { return core.scaled_round == round_ || is_done(); };
  tell_commit(has_scale);
  wait_for_ps("the norm", has_scale);
  if (core.scaled_round != round_) others_went_on(round_ + 1);
  return core.scale;
}

// Otherwise the word of those that have committed the round without this worker is on its way.
void PsRoundFence::lose(std::int64_t round) {
  settled_ = false;
  if (round <= round_) context_.driver.withdraw(context_.core.steps_sent - 1);
  wait_for_ps("the end", [this] { return is_done(); });
}

void PsRoundFence::wait_closed() {
  tell_commit([this] { return is_done(); });
  if (!is_done()) wait_for_ps("the end", [this] { return is_done(); });
  if (committed_ && *committed_ != context_.core.last_contributors) others_went_on(round_ + 1);
}

void PsRoundFence::check() const { context_.core.check(); }

bool PsRoundFence::is_cut_off() const { return context_.core.cut_off > 0; }

std::uint64_t PsRoundFence::ps_incarnation() const { return context_.driver.ps_incarnation(); }

}  // namespace paceline
