// The control of a job whose steps are each made of several own steps.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "params/job_control.h"

namespace paceline {

/// Steps are own steps; `below` counts one for each `steps` of them.
class AccumulateControl : public JobControl {
 public:
  AccumulateControl(std::shared_ptr<JobControl> below, int steps)
      : below_(std::move(below)), steps_(steps) {}

  bool all_warm() const override { return below_->all_warm(); }
  void set_done() override { below_->set_done(); }
  bool wait_all_done(Deadline deadline) override { return below_->wait_all_done(deadline); }
  bool all_done() const override { return below_->all_done(); }
  bool any_done() const override { return below_->any_done(); }
  void end_training() override { below_->end_training(); }
  bool training_ended() const override { return below_->training_ended(); }
  void goodbye() override { below_->goodbye(); }
  bool was_initialised() const override { return below_->was_initialised(); }
  void wait_initialised() override { below_->wait_initialised(); }
  void restore(std::span<const TaskState> states) override {
    std::vector<TaskState> whole(states.begin(), states.end());
    for (TaskState& state : whole) state.step /= steps_;
    below_->restore(whole);
  }
  std::int64_t next_step() const override { return below_->next_step() * steps_; }
  std::optional<TaskState> restored() const override {
    std::optional<TaskState> state = below_->restored();
    if (state) state->step *= steps_;
    return state;
  }
  void add_own_state(TaskState& state) const override { below_->add_own_state(state); }
  bool state_asked() const override { return below_->state_asked(); }
  bool others_save() const override { return below_->others_save(); }
  void send_state(const TaskState& state) override {
    TaskState whole = state;
    whole.step = below_->next_step();
    below_->send_state(whole);
  }
  bool stop_asked() const override { return below_->stop_asked(); }
  bool takes_over_saving() const override { return below_->takes_over_saving(); }

 private:
  const std::shared_ptr<JobControl> below_;
  const std::int64_t steps_;
};

}  // namespace paceline
