#include "train/train_limit.h"

namespace paceline {

bool TrainLimit::go_on(std::int64_t global_step) {
  if (steps_ && global_step >= *steps_) return false;
  if (control_.training_ended()) return false;
  start_when_warm();
  if (seconds_ && meter_.running() && time_is_over()) {
    meter_.stop();
    control_.set_done();
  }
  return !(seconds_ && meter_.stopped()) || !control_.all_done();
}

void TrainLimit::start_when_warm() {
  if (meter_.running() || meter_.stopped() || meter_.steps() < kUntimedSteps) return;
  if (seconds_ && !control_.all_warm()) return;
  meter_.start();
}

bool TrainLimit::time_is_over() const {
  return double(meter_.since_start().count()) * 1e-9 >= *seconds_;
}

}  // namespace paceline
