// Perplexity: a language model is as uncertain as if it chose evenly among this number of words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace paceline::models {

/// exp(costs ÷ time steps): costs are sums over time, means over the batch.
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

/// The perplexities over the first and over the last steps of a training, across epochs. Adding a
/// step allocates no memory.
class PerplexityEnds {
 public:
  /// The steps at either end; fewer if a training has fewer.
  static constexpr std::size_t kSteps = 10;

  void add(double cost, std::int64_t time_steps);
  /// Return the perplexity over the first and over the last steps; nothing before the first step.
  std::optional<double> first() const;
  std::optional<double> last() const;

 private:
  struct Step {
    double cost = 0;
    std::int64_t time_steps = 0;
  };
  Perplexity first_;
  std::array<Step, kSteps> last_{};  // a ring
  std::size_t added_ = 0;
};

}  // namespace paceline::models
