// The control of a job whose workers make local steps between its rounds.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "params/forwarding_control.h"
#include "params/protocol/outer_schedule.h"

namespace paceline {

/// The part of the store that its control has to do with.
class OuterState {
 public:
  virtual ~OuterState() = default;
  virtual const OuterSchedule& schedule() const = 0;
  /// Waits until the last round of this worker is closed.
  virtual void settle() = 0;
  /// Adds the slots that this worker keeps.
  virtual void add_slots(TaskState& state) = 0;
  /// Gives the state that has them, before training begins.
  virtual void restored(TaskState state) = 0;
};

/// Steps are local steps; `below` counts rounds.
class OuterControl : public ForwardingControl {
 public:
  OuterControl(std::shared_ptr<JobControl> below, std::shared_ptr<OuterState> store, int worker)
      : ForwardingControl(std::move(below)), store_(std::move(store)), worker_(worker) {}

  /// A worker that is interrupted waits for no round.
  void set_done() override {
    try {
      store_->settle();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
    }
    below_->set_done();
  }
  void restore(std::span<const TaskState> states) override {
    std::vector<TaskState> rounds(states.begin(), states.end());
    const auto own = std::ranges::find(states, worker_, &TaskState::worker);
    if (own != states.end()) store_->restored(*own);
    for (TaskState& state : rounds) state.step = store_->schedule().rounds_of(state.step);
    below_->restore(rounds);
  }
  std::int64_t next_step() const override {
    return store_->schedule().steps_of(below_->next_step());
  }
  std::optional<TaskState> restored() const override {
    std::optional<TaskState> state = below_->restored();
    if (state) state->step = store_->schedule().steps_of(state->step);
    return state;
  }
  void add_own_state(TaskState& state) const override { store_->add_slots(state); }

 private:
  const std::shared_ptr<OuterState> store_;
  const int worker_;
};

}  // namespace paceline
