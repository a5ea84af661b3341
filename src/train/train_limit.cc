#include "train/train_limit.h"

namespace paceline {

bool TrainLimit::go_on(std::int64_t global_step) {
  if (steps_ && global_step >= *steps_) return false;
  if (control_.training_ended()) return false;
  start_when_warm();
  if (seconds_ && !meter_.stopped() && time_is_over()) {
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
  return (meter_.running() && seconds_counted() >= *seconds_) || (is_late_ && control_.any_done());
}

double TrainLimit::seconds_counted() const {
  const bool started = meter_.running() || meter_.stopped();
  return started ? std::chrono::duration<double>(meter_.since_start()).count() : 0;
}

}  // namespace paceline
