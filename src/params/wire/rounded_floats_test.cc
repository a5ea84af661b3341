#include "params/wire/rounded_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "paceline/dtype.h"

namespace paceline {
namespace {

std::vector<float> waves(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(float(i)) * float(1 + i % 97);
  return values;
}

std::span<std::byte> bytes_of(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Returns the values that arrive at the other end: rounded, moved and widened.
std::vector<float> sent(std::vector<float> values, float* errors = nullptr) {
  const std::span<const std::byte> payload = round_in_place(bytes_of(values), errors);
  std::vector<float> there(values.size(), -1);
  const std::span<std::byte> place = place_of_rounded(bytes_of(there));
  EXPECT_EQ(payload.size(), place.size());
  if (!payload.empty()) std::memcpy(place.data(), payload.data(), payload.size());
  widen_in_place(bytes_of(there));
  return there;
}

TEST(RoundedFloats, AreRoundedToNearestEvenInPlace) {
  for (const std::size_t n : {0u, 1u, 2u, 15u, 16u, 17u, 1000u, 4097u}) {
    const std::vector<float> values = waves(n), there = sent(values);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(there[i], float(BFloat16(values[i]))) << i;
  }
}

// A sum of many small numbers: without feedback most would be lost in the rounding.
TEST(RoundedFloats, WithFeedbackTheSumOfWhatIsSentIsThatOfTheValuesToOneRounding) {
  constexpr std::size_t kN = 517;
  std::vector<float> errors(kN, 0.0f);
  std::vector<double> values_sum(kN, 0), sent_sum(kN, 0);
  std::vector<float> largest(kN, 0);
  for (int step = 0; step < 100; ++step) {
    std::vector<float> values = waves(kN);
    for (float& value : values) value *= 1 + 0.001f * float(step);
    const std::vector<float> there = sent(values, errors.data());
    for (std::size_t i = 0; i < kN; ++i) {
      values_sum[i] += values[i];
      sent_sum[i] += there[i];
      largest[i] = std::max(largest[i], std::abs(there[i]));
    }
  }
  for (std::size_t i = 0; i < kN; ++i) {
    ASSERT_NEAR(sent_sum[i], values_sum[i], largest[i] / 256 * 1.001) << i;
    ASSERT_NEAR(sent_sum[i] + errors[i], values_sum[i], 100 * 1e-7 * largest[i]) << i;
  }
}

TEST(RoundedFloats, WhatIsNotFiniteLeavesNoError) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max();  // rounds to infinity
  std::vector<float> errors(20, 0.0f);
  std::vector<float> values(20, infinite);
  values[1] = nan;
  values[2] = largest;
  values[19] = -largest;
  const std::vector<float> there = sent(values, errors.data());
  EXPECT_EQ(there[0], infinite);
  EXPECT_TRUE(std::isnan(there[1]));
  EXPECT_EQ(there[2], infinite);
  EXPECT_EQ(there[19], -infinite);
  EXPECT_EQ(errors, std::vector<float>(20, 0.0f));
}

}  // namespace
}  // namespace paceline
