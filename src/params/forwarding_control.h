// A control over another one. It passes on every call that it does not answer itself.
#pragma once

#include <memory>
#include <utility>

#include "params/job_control.h"

namespace paceline {

/// Forwards the calls that do not count steps. A derived control defines the other calls if its
/// steps are not those of the control below.
class ForwardingControl : public JobControl {
 public:
  explicit ForwardingControl(std::shared_ptr<JobControl> below) : below_(std::move(below)) {}

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
  void add_own_state(TaskState& state) const override { below_->add_own_state(state); }
  bool state_asked() const override { return below_->state_asked(); }
  std::shared_ptr<SharedRecordBlocks> records() const override { return below_->records(); }
  bool others_save() const override { return below_->others_save(); }
  /// Sends the state with the step number of the control below.
  void send_state(const TaskState& state) override {
    TaskState of_below = state;
    of_below.step = below_->next_step();
    below_->send_state(of_below);
  }
  bool stop_asked() const override { return below_->stop_asked(); }
  bool takes_over_saving() const override { return below_->takes_over_saving(); }
  bool any_worker_saves() const override { return below_->any_worker_saves(); }
  EndSave wait_end_save(Deadline deadline, bool patient) override {
    return below_->wait_end_save(deadline, patient);
  }
  void set_saved() override { below_->set_saved(); }
  void ask_progress() override { below_->ask_progress(); }

 protected:
  const std::shared_ptr<JobControl> below_;
};

}  // namespace paceline
