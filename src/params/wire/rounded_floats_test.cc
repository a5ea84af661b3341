#include "params/wire/rounded_floats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "paceline/tensor.h"

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
std::vector<float> sent(std::vector<float> values, DType type, float* errors = nullptr) {
  const std::span<const std::byte> payload = round_in_place(bytes_of(values), type, errors);
  std::vector<float> there(values.size(), -1);
  const std::span<std::byte> place = place_of_rounded(bytes_of(there), type);
  EXPECT_EQ(payload.size(), place.size());
  if (!payload.empty()) std::memcpy(place.data(), payload.data(), payload.size());
  widen_in_place(bytes_of(there), type);
  return there;
}

constexpr std::size_t kSizes[] = {0, 1, 2, 15, 16, 17, 255, 256, 257, 1000, 4097};
constexpr DType kRoundedTypes[] = {DType::kBFloat16, DType::kFloat16, DType::kUInt8};

TEST(RoundedFloats, AreRoundedToNearestEvenInPlace) {
  for (const std::size_t n : kSizes) {
    const std::vector<float> values = waves(n);
    const auto brain = sent(values, DType::kBFloat16), half = sent(values, DType::kFloat16);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(brain[i], float(BFloat16(values[i]))) << i;
      ASSERT_EQ(half[i], float(Float16(values[i]))) << i;
    }
    EXPECT_EQ(sent(values, DType::kFloat32), values);
  }
}

TEST(RoundedFloats, BytesAreOffByHalfAStepOfTheirBlock) {
  for (const std::size_t n : kSizes) {
    const std::vector<float> values = waves(n), there = sent(values, DType::kUInt8);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t first = i / kScaledBlock * kScaledBlock;
      float largest = 0;
      for (std::size_t j = first; j < std::min(n, first + kScaledBlock); ++j) {
        largest = std::max(largest, std::abs(values[j]));
      }
      ASSERT_NEAR(there[i], values[i], largest / 127 / 2 * 1.01f) << i;
    }
  }
}

TEST(RoundedFloats, TakeAsManyBytesAsTheirTypeSays) {
  for (const std::size_t n : kSizes) {
    EXPECT_EQ(travelling_bytes(4 * n, DType::kUInt8), n + (n + 255) / 256 * 2);
    for (const DType type : kRoundedTypes) {
      EXPECT_EQ(float_bytes(travelling_bytes(4 * n, type), type), 4 * n);
    }
  }
  for (const std::size_t none : {1u, 2u, 259u, 260u}) {
    EXPECT_EQ(float_bytes(none, DType::kUInt8), std::nullopt) << none;
  }
}

// Sums the values of 100 steps. Without feedback, the rounding errors of all steps would add up;
// with feedback, each sum is off by one rounding at most.
class Feedback : public ::testing::TestWithParam<std::pair<DType, float>> {};

TEST_P(Feedback, MakesTheSumOfWhatIsSentThatOfTheValuesToOneRounding) {
  const auto [type, roundings] = GetParam();
  constexpr std::size_t kN = 517;
  std::vector<float> errors(kN, 0.0f);
  std::vector<double> values_sum(kN, 0), sent_sum(kN, 0);
  float largest = 0;
  for (int step = 0; step < 100; ++step) {
    std::vector<float> values = waves(kN);
    for (float& value : values) value *= 1 + 0.001f * float(step);
    const std::vector<float> there = sent(values, type, errors.data());
    for (std::size_t i = 0; i < kN; ++i) {
      values_sum[i] += values[i];
      sent_sum[i] += there[i];
    }
    for (const float value : there) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < kN; ++i) {
    ASSERT_NEAR(sent_sum[i], values_sum[i], largest / roundings * 1.001) << i;
    ASSERT_NEAR(sent_sum[i] + errors[i], values_sum[i], 100 * 1e-7 * largest) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Feedback,
                         ::testing::Values(std::pair(DType::kBFloat16, 256.0f),
                                           std::pair(DType::kFloat16, 2048.0f),
                                           std::pair(DType::kUInt8, 250.0f)));

TEST(RoundedFloats, WhatIsTooLargeForFloat16IsSentBitByBit) {
  std::vector<float> errors(1, 0.0f);
  EXPECT_EQ(sent({70000}, DType::kFloat16, errors.data())[0], 65504);
  EXPECT_EQ(errors[0], 4496);
  EXPECT_EQ(sent({0}, DType::kFloat16, errors.data())[0], 4496);
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sent({-infinite}, DType::kFloat16)[0], -infinite);
}

TEST(RoundedFloats, WhatIsNotFiniteSpoilsItsBlockOfBytes) {
  std::vector<float> values(300, 1.0f), errors(300, 0.0f);
  values[7] = std::numeric_limits<float>::infinity();
  const std::vector<float> there = sent(values, DType::kUInt8, errors.data());
  EXPECT_TRUE(std::isnan(there[0]));
  EXPECT_NEAR(there[299], 1, 0.01);
  EXPECT_EQ(errors[0], 0);
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
  const std::vector<float> there = sent(values, DType::kBFloat16, errors.data());
  EXPECT_EQ(there[0], infinite);
  EXPECT_TRUE(std::isnan(there[1]));
  EXPECT_EQ(there[2], infinite);
  EXPECT_EQ(there[19], -infinite);
  EXPECT_EQ(errors, std::vector<float>(20, 0.0f));
}

}  // namespace
}  // namespace paceline
