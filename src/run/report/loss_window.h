// The loss of several steps in a row, which varies less than that of one batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace paceline {

struct LossWindow {
  double mean = 0, deviation = 0;  // of the losses of single steps
  std::int64_t steps = 0;

  bool operator==(const LossWindow&) const = default;
};

/// True if the mean of `a` exceeds that of `b` by more than chance explains, or is not a number.
bool is_above(const LossWindow& a, const LossWindow& b);

/// Collects the losses at the beginning and at the end of a run; the two windows do not overlap.
/// Adding a loss allocates nothing.
class LossWindows {
 public:
  void add(double loss);
  /// Returns the window over the first steps, with as many steps as the window at the end; empty
  /// for a short run.
  std::optional<LossWindow> begin() const;
  std::optional<LossWindow> end() const;

 private:
  static constexpr std::int64_t kSteps = 20, kFewest = 5;

  std::int64_t steps_of_each() const;
  static std::optional<LossWindow> window_of(std::span<const double> losses);

  std::array<double, kSteps> first_{}, last_{};  // `last_` is a ring
  std::int64_t added_ = 0;
};

}  // namespace paceline
