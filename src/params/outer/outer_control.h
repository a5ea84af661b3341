// The control of a job whose workers make local steps between its rounds.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "paceline/error.h"
#include "params/job_control.h"
#include "params/outer/outer_schedule.h"

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
class OuterControl : public JobControl {
 public:
  OuterControl(std::shared_ptr<JobControl> below, std::shared_ptr<OuterState> store, int worker)
      : below_(std::move(below)), store_(std::move(store)), worker_(worker) {}

  bool all_warm() const override { return below_->all_warm(); }
  /// A worker that is interrupted waits for no round.
  void set_done() override {
    try {
      store_->settle();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCancelled) throw;
    }
    below_->set_done();
  }
  bool wait_all_done(Deadline deadline) override { return below_->wait_all_done(deadline); }
  bool all_done() const override { return below_->all_done(); }
  bool any_done() const override { return below_->any_done(); }
  void end_training() override { below_->end_training(); }
  bool training_ended() const override { return below_->training_ended(); }
  void goodbye() override { below_->goodbye(); }
  bool was_initialised() const override { return below_->was_initialised(); }
  void wait_initialised() override { below_->wait_initialised(); }
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
  bool state_asked() const override { return below_->state_asked(); }
  bool others_save() const override { return below_->others_save(); }
  void send_state(const TaskState& state) override {
    TaskState rounds = state;
    rounds.step = below_->next_step();
    below_->send_state(rounds);
  }
  bool stop_asked() const override { return below_->stop_asked(); }
  bool takes_over_saving() const override { return below_->takes_over_saving(); }

 private:
  const std::shared_ptr<JobControl> below_;
  const std::shared_ptr<OuterState> store_;
  const int worker_;
};

}  // namespace paceline
