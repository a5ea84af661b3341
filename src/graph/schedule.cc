#include "paceline/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "paceline/error.h"

namespace paceline {
namespace {

void expect(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorCode::kInvalidArgument, "[schedule] " + message);
}

void expect_positive(std::int64_t steps, std::string_view what) {
  expect(steps > 0, fmt::format("{} is {}; it must be 1 or more", what, steps));
}

/// Returns step / steps, at most 1.
double part_of(std::int64_t step, std::int64_t steps) {
  return std::min(1.0, double(step) / double(steps));
}

}  // namespace

Schedule Schedule::constant(double factor) {
  return Schedule([factor](std::int64_t) { return factor; });
}

Schedule Schedule::exponential(double rate, std::int64_t decay_steps) {
  expect_positive(decay_steps, "decay_steps");
  return Schedule(
      [=](std::int64_t step) { return std::pow(rate, double(step) / double(decay_steps)); });
}

Schedule Schedule::staircase(double rate, std::int64_t decay_steps) {
  expect_positive(decay_steps, "decay_steps");
  return Schedule([=](std::int64_t step) {
    const std::int64_t stairs = step / decay_steps;
    return std::pow(rate, double(stairs));
  });
}

Schedule Schedule::piecewise(std::vector<std::int64_t> boundaries, std::vector<double> factors) {
  expect(factors.size() == boundaries.size() + 1,
         fmt::format("{} factors for {} boundaries; one more is needed", factors.size(),
                     boundaries.size()));
  expect(std::ranges::adjacent_find(boundaries, std::greater_equal<>()) == boundaries.end(),
         fmt::format("boundaries {} do not rise", fmt::join(boundaries, ", ")));
  return Schedule(
      [boundaries = std::move(boundaries), factors = std::move(factors)](std::int64_t step) {
        const auto next = std::ranges::upper_bound(boundaries, step);
        return factors[std::size_t(next - boundaries.begin())];
      });
}

Schedule Schedule::polynomial(std::int64_t decay_steps, double end, double power) {
  expect_positive(decay_steps, "decay_steps");
  return Schedule([=](std::int64_t step) {
    return (1 - end) * std::pow(1 - part_of(step, decay_steps), power) + end;
  });
}

Schedule Schedule::cosine(std::int64_t decay_steps, double end) {
  expect_positive(decay_steps, "decay_steps");
  return Schedule([=](std::int64_t step) {
    const double angle = std::numbers::pi * part_of(step, decay_steps);
    return (1 - end) * 0.5 * (1 + std::cos(angle)) + end;
  });
}

Schedule Schedule::warm_up(std::int64_t warm_up_steps, Schedule after) {
  expect_positive(warm_up_steps, "warm_up_steps");
  return Schedule([=, after = std::move(after)](std::int64_t step) {
    return step < warm_up_steps ? double(step + 1) / double(warm_up_steps)
                                : after.at(step - warm_up_steps);
  });
}

}  // namespace paceline
