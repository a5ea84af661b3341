#include "params/wire/largest_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "params/wire/rounded_floats.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

std::vector<float> noise(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(float(i * i)) * float(1 + i % 97);
  return values;
}

std::span<std::byte> bytes_of_largest(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Returns the values that arrive at the other end.
std::vector<float> sent_largest(std::vector<float> values, const ContributionForm& form,
                                float* errors = nullptr) {
  std::vector<std::byte> payload(travelling_bytes(4 * values.size(), form));
  EXPECT_EQ(keep_largest(bytes_of_largest(values), form, errors, payload.data()), payload.size());
  std::vector<float> there(values.size(), -1);
  const std::span<std::byte> place = place_of_rounded(bytes_of_largest(there), form);
  EXPECT_EQ(payload.size(), place.size());
  if (!payload.empty()) std::memcpy(place.data(), payload.data(), payload.size());
  widen_in_place(bytes_of_largest(there), form);
  return there;
}

// The naive version: sorts each block.
std::vector<float> largest_of(const std::vector<float>& values, std::size_t kept) {
  std::vector<float> there(values.size());
  for (std::size_t first = 0; first < values.size(); first += kScaledBlock) {
    const std::size_t n = std::min(kScaledBlock, values.size() - first);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = first + i;
    std::ranges::stable_sort(order, std::greater(),
                             [&](std::size_t i) { return std::abs(values[i]); });
    if (4 * n > 5 * kept) order.resize(kept);  // otherwise all travel, without places
    for (const std::size_t i : order) there[i] = values[i];
  }
  return there;
}

TEST(LargestNumbers, OfEachBlockArriveAndAllOthersAre0) {
  for (const std::size_t n : {0u, 1u, 7u, 8u, 255u, 256u, 257u, 260u, 4097u}) {
    const std::vector<float> values = noise(n);
    for (const int kept : {1, 8, 128}) {
      EXPECT_EQ(sent_largest(values, {DType::kFloat32, kept}),
                largest_of(values, std::size_t(kept)))
          << n << ", " << kept;
    }
  }
}

TEST(LargestNumbers, AreRoundedToTheirType) {
  const std::vector<float> values = noise(1024), all = largest_of(values, 8);
  const auto brain = sent_largest(values, {DType::kBFloat16, 8}),
             half = sent_largest(values, {DType::kFloat16, 8});
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(brain[i], float(BFloat16(all[i])));
    ASSERT_EQ(half[i], float(Float16(all[i])));
  }
}

TEST(LargestNumbers, OfEqualOnesTheFirstAreKept) {
  EXPECT_THAT(sent_largest({2, 3, -3, 3, 1, 3}, {DType::kFloat32, 2}),
              ElementsAre(0, 3, -3, 0, 0, 0));
}

TEST(LargestNumbers, TakeTheirPlacesAndTheirBytes) {
  EXPECT_EQ(travelling_bytes(4 * 256, {DType::kFloat32, 8}), 8 * 5u);
  EXPECT_EQ(travelling_bytes(4 * 256, {DType::kBFloat16, 8}), 8 * 3u);
  EXPECT_EQ(travelling_bytes(4 * 1000, {DType::kFloat16, 1}), 4 * 3u);
}

TEST(LargestNumbers, AreAllOfALastBlockOfFew) {
  EXPECT_EQ(travelling_bytes(4 * 259, {DType::kBFloat16, 8}), 8 * 3u + 3 * 2);
  EXPECT_EQ(travelling_bytes(4 * 2, {DType::kFloat32, 1}), 5u);
  EXPECT_EQ(travelling_bytes(4 * 1, {DType::kFloat32, 1}), 4u);
}

// With error feedback nothing is lost: the numbers that one contribution leaves out travel in later
// ones.
TEST(LargestNumbers, WhatIsLeftOutIsAddedToTheNextOnes) {
  for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const std::vector<float> values = noise(700);
    std::vector<float> errors(values.size(), 0.0f);
    std::vector<double> arrived(values.size(), 0.0);
    constexpr int kSteps = 150;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> there = sent_largest(values, {type, 16}, errors.data());
      for (std::size_t i = 0; i < values.size(); ++i) arrived[i] += there[i];
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(arrived[i] + errors[i], kSteps * double(values[i]), 0.05) << i;
    }
    EXPECT_GT(std::ranges::count_if(arrived, [](double sum) { return sum != 0; }), 600);
  }
}

TEST(LargestNumbers, WhatIsNotFiniteIsSeenAndNotFedBack) {
  std::vector<float> values(300, 1.0f), errors(300, 0.0f);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  values[290] = -std::numeric_limits<float>::infinity();
  const std::vector<float> there = sent_largest(values, {DType::kFloat16, 1}, errors.data());
  EXPECT_TRUE(std::isnan(there[7]));
  EXPECT_EQ(there[290], values[290]);
  EXPECT_TRUE(std::ranges::all_of(errors, [](float error) { return std::isfinite(error); }));
  EXPECT_EQ(sent_largest({1e6f}, {DType::kFloat16, 1}, errors.data())[0], 65504);
}

TEST(LargestNumbers, APlaceOutsideOfItsBlockIsItsLast) {
  const ContributionForm form(DType::kFloat32, 1);
  std::vector<float> there(3, -1.0f);
  const float value = 5;
  std::span<std::byte> place = place_of_rounded(bytes_of_largest(there), form);
  place[0] = std::byte{200};
  std::memcpy(&place[1], &value, sizeof(value));
  widen_in_place(bytes_of_largest(there), form);
  EXPECT_THAT(there, ElementsAre(0, 0, 5));
}

}  // namespace
}  // namespace paceline
