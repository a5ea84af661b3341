// The lines that the training of an image model prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "paceline/graph.h"
#include "paceline/hooks.h"
#include "paceline/session.h"

namespace paceline::models {

/// A term of a loss, with its name for the user.
struct LossTerm {
  std::string name;
  Value value;  // a float32 scalar
};
/// Returns the values of the terms, for SessionOptions::watch.
std::vector<Value> values_of(const std::vector<LossTerm>& terms);

/// Prints `step 10, loss = 4.66 (2514.3 images/s; 0.051 s/step)` every 10 own steps, where images
/// of all towers count. Every 100 own steps, prints the terms of the loss and their total.
class ImagesPerSecond : public Hook {
 public:
  /// The session must watch the terms. `batch` is the number of images in a tower's batch.
  ImagesPerSecond(std::vector<LossTerm> terms, std::int64_t batch)
      : terms_(std::move(terms)), batch_(batch) {}
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;

 private:
  using Clock = std::chrono::steady_clock;
  void print_rate(Session& session, const StepResult& result);
  void print_terms(Session& session, const StepResult& result) const;
  void printed(std::int64_t step);

  const std::vector<LossTerm> terms_;
  const std::int64_t batch_;
  Clock::time_point since_;
  std::int64_t since_step_ = -1;
};

/// Prints at the end `elapsed 61.2 s, 0.049 to 0.055 s/step (5% to 95% of the steps)`: the time
/// since the first run began, and the 5th and the 95th percentile of the times of this task's
/// steps.
class ElapsedTime : public Hook {
 public:
  void begin(Session& session) override;
  bool after_step(Session& session, const StepResult& result) override;
  void end(Session& session) override;

 private:
  std::chrono::steady_clock::time_point begun_;
  std::vector<float> seconds_;  // of each step
};

}  // namespace paceline::models
