#include "train/skipped_steps.h"

#include <fmt/format.h>

#include <cmath>

namespace paceline {

bool SkippedSteps::after_step(Session& /*session*/, const StepResult& result) {
  const bool finite = std::isfinite(result.loss);
  const std::int64_t left_out = skipped_();
  if (!finite || left_out > left_out_) {
    last_ = result.step - 1;  // as a worker that stops numbers its steps: from 0
    if (first_ < 0) first_ = last_;
  }
  ++steps_;
  losses_ += finite ? 0 : 1;
  left_out_ = left_out;
  return true;
}

void SkippedSteps::end(Session& session) {
  if (first_ < 0) return;
  session.print(
      fmt::format("--on-nan skip: the loss was NaN or infinite in {} of {} steps, and {} "
                  "contribution{} left out, in steps {} to {} of this task",
                  losses_, steps_, left_out_, left_out_ == 1 ? " was" : "s were", first_, last_));
}

}  // namespace paceline
