// The control of a job whose variables are kept by two stores.
#pragma once

#include <memory>
#include <utility>

#include "params/forwarding_control.h"

namespace paceline {

/// What needs one answer is asked of the ps tasks, which see all workers. Both have to know who is
/// done and who leaves.
class HybridControl : public ForwardingControl {
 public:
  HybridControl(std::shared_ptr<JobControl> sparse, std::shared_ptr<JobControl> dense)
      : ForwardingControl(std::move(sparse)), dense_(std::move(dense)) {}

  void set_done() override {
    dense_->set_done();
    below_->set_done();
  }
  bool wait_all_done(Deadline deadline) override {
    const bool dense = dense_->wait_all_done(deadline);
    return below_->wait_all_done(deadline) && dense;
  }
  void end_training() override {
    dense_->end_training();
    below_->end_training();
  }
  bool training_ended() const override {
    return below_->training_ended() || dense_->training_ended();
  }
  void goodbye() override {
    dense_->goodbye();
    below_->goodbye();
  }
  /// The worker that founds the all-reduce brings the values of both.
  bool was_initialised() const override { return dense_->was_initialised(); }
  void wait_initialised() override {
    below_->wait_initialised();
    dense_->wait_initialised();
  }
  void restore(std::span<const TaskState> states) override {
    below_->restore(states);
    dense_->restore(states);
  }
  std::int64_t next_step() const override { return below_->next_step(); }
  std::optional<TaskState> restored() const override { return below_->restored(); }
  void send_state(const TaskState& state) override { below_->send_state(state); }

 private:
  const std::shared_ptr<JobControl> dense_;
};

}  // namespace paceline
