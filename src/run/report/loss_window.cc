#include "run/report/loss_window.h"

#include <algorithm>
#include <cmath>

namespace paceline {

bool is_above(const LossWindow& a, const LossWindow& b) {
  constexpr double kByChance = 4;  // deviations of the difference of the means
  const double of_a = a.deviation * a.deviation / double(a.steps);
  const double of_b = b.deviation * b.deviation / double(b.steps);
  return !(a.mean - b.mean <= kByChance * std::sqrt(of_a + of_b));  // true with NaN
}

void LossWindows::add(double loss) {
  if (added_ < kSteps) first_[std::size_t(added_)] = loss;
  last_[std::size_t(added_++ % kSteps)] = loss;
}

std::int64_t LossWindows::steps_of_each() const {
  const std::int64_t steps = std::min(kSteps, added_ / 2);
  return steps < kFewest ? 0 : steps;
}

std::optional<LossWindow> LossWindows::window_of(std::span<const double> losses) {
  if (losses.empty()) return std::nullopt;
  const auto steps = double(losses.size());
  double sum = 0, squares = 0;
  for (const double loss : losses) sum += loss;
  const double mean = sum / steps;
  for (const double loss : losses) squares += (loss - mean) * (loss - mean);
  return LossWindow{mean, std::sqrt(squares / (steps - 1)), std::int64_t(losses.size())};
}

std::optional<LossWindow> LossWindows::begin() const {
  return window_of(std::span(first_).first(std::size_t(steps_of_each())));
}

std::optional<LossWindow> LossWindows::end() const {
  std::array<double, kSteps> losses{};
  const std::int64_t steps = steps_of_each();
  for (std::int64_t i = 0; i < steps; ++i) {
    losses[std::size_t(i)] = last_[std::size_t((added_ - steps + i) % kSteps)];
  }
  return window_of(std::span(losses).first(std::size_t(steps)));
}

}  // namespace paceline
