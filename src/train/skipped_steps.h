// What --on-nan skip has left out, and when.
#pragma once

#include <cstdint>
#include <functional>

#include "paceline/hooks.h"

namespace paceline {

/// Says at the end of a run in how many of its steps the loss was infinite or not a number, how
/// many contributions were left out, and which steps those were: a loss can be infinite though all
/// gradients are finite and are applied.
class SkippedSteps : public Hook {
 public:
  /// `skipped` tells how many contributions of this task were left out so far.
  explicit SkippedSteps(std::function<std::int64_t()> skipped) : skipped_(std::move(skipped)) {}
  bool after_step(Session& session, const StepResult& result) override;
  void end(Session& session) override;

 private:
  const std::function<std::int64_t()> skipped_;
  std::int64_t steps_ = 0, losses_ = 0, left_out_ = 0;
  std::int64_t first_ = -1, last_ = -1;  // own steps
};

}  // namespace paceline
