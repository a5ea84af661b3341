// Perplexity. A language model of perplexity P is as uncertain as a uniform choice among P words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace paceline::models {

/// exp(sum of costs ÷ number of time steps). A cost is summed over the time steps of a batch, and
/// is the mean over its rows.
class Perplexity {
 public:
  void add(double cost, std::int64_t time_steps) {
    cost_ += cost;
    time_steps_ += time_steps;
  }
  double cost() const { return cost_; }
  std::int64_t time_steps() const { return time_steps_; }
  /// NaN when nothing was added.
  double value() const;

 private:
  double cost_ = 0;
  std::int64_t time_steps_ = 0;
};

/// The perplexity over the first steps and over the last steps of a training, across epochs. Adding
/// a step allocates no memory.
class PerplexityEnds {
 public:
  /// The number of steps at either end, or all steps of a shorter training.
  static constexpr std::size_t kSteps = 10;

  void add(double cost, std::int64_t time_steps);
  /// first() and last() return the perplexity over the first and over the last steps. They return
  /// nothing before the first step.
  std::optional<double> first() const;
  std::optional<double> last() const;

 private:
  struct Step {
    double cost = 0;
    std::int64_t time_steps = 0;
  };
  Perplexity first_;
  std::array<Step, kSteps> last_{};  // a ring buffer
  std::size_t added_ = 0;
};

}  // namespace paceline::models
