// The control of a job that is one process: it has nobody to wait for, and no other task asks for
// anything.
#pragma once

#include "params/job_control.h"

namespace paceline {

class LocalControl : public JobControl {
 public:
  bool all_warm() const override { return true; }
  void set_done() override {}
  bool wait_all_done(Deadline) override { return true; }
  bool all_done() const override { return true; }
  bool any_done() const override { return false; }
  void end_training() override { training_ended_ = true; }
  bool training_ended() const override { return training_ended_; }
  void goodbye() override {}
  bool was_initialised() const override { return false; }
  void wait_initialised() override {}
  /// Keeps the first state, which is that of the only worker.
  void restore(std::span<const TaskState> states) override {
    if (!states.empty()) restored_ = states.front();
  }
  std::int64_t next_step() const override { return restored_ ? restored_->step : 0; }
  std::optional<TaskState> restored() const override { return restored_; }
  bool state_asked() const override { return false; }
  bool others_save() const override { return false; }
  void send_state(const TaskState&) override {}
  bool stop_asked() const override { return false; }

 private:
  std::optional<TaskState> restored_;
  bool training_ended_ = false;
};

}  // namespace paceline
