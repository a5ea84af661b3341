// JobControl for gradient accumulation: several steps of the program (own steps) make one step of
// the job below.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "params/forwarding_control.h"

namespace paceline {

/// Counts own steps; the control `below` counts one step for every `steps` own steps.
class AccumulateControl : public ForwardingControl {
 public:
  AccumulateControl(std::shared_ptr<JobControl> below, int steps)
      : ForwardingControl(std::move(below)), steps_(steps) {}

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

 private:
  const std::int64_t steps_;
};

}  // namespace paceline
