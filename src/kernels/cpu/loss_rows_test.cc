#include "kernels/cpu/loss_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/testing/each_instruction_set.h"
#include "kernels/testing/ulp.h"

namespace paceline {
namespace {

constexpr float kInfiniteLoss = std::numeric_limits<float>::infinity();
const float kNanLoss = std::nanf("");

std::vector<float> exps_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  scaled_exp(x.data(), 0, 1, y.data(), std::int64_t(x.size()));
  return y;
}

TEST(LossRows, ExponentialsAreWithinTwoUlpDownToTheLeastNormalFloat) {
  std::vector<float> x;
  const auto last = std::bit_cast<std::uint32_t>(-87.3365f);
  for (auto bits = std::bit_cast<std::uint32_t>(-0.0f); bits <= last; bits += 4999) {
    x.push_back(std::bit_cast<float>(bits));
  }
  with_each_instruction_set([&] {
    const std::vector<float> y = exps_of(x);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, error_in_ulp(y[i], std::exp(double(x[i]))));
    }
    EXPECT_LE(worst, 2);
  });
}

TEST(LossRows, ExponentialsBelowThatAreZeroAndNanStays) {
  with_each_instruction_set([] {
    const std::vector<float> y = exps_of(
        {-87.34f, -88, -104, -1e9f, -std::numeric_limits<float>::max(), -kInfiniteLoss, kNanLoss});
    for (std::size_t i = 0; i + 1 < y.size(); ++i) EXPECT_EQ(y[i], 0) << i;
    EXPECT_TRUE(std::isnan(y.back()));
  });
}

TEST(LossRows, SquaresThatAreNoFloatsAreSummedAllTheSame) {
  with_each_instruction_set([] {
    for (const float value : {1e20f, 1e-24f, 3e38f}) {
      const std::vector<float> x(40, value), zeros(40);
      const double expected = 40 * double(value) * double(value);
      EXPECT_DOUBLE_EQ(sum_squares(x.data(), 40), expected) << value;
      EXPECT_DOUBLE_EQ(sum_squared_differences(x.data(), zeros.data(), 40), expected) << value;
    }
    const std::vector<float> zeros(40), nan(40, kNanLoss), infinite(40, kInfiniteLoss);
    EXPECT_EQ(sum_squares(zeros.data(), 40), 0);
    EXPECT_TRUE(std::isnan(sum_squares(nan.data(), 40)));
    EXPECT_EQ(sum_squares(infinite.data(), 40), kInfiniteLoss);
  });
}

TEST(LossRows, ABlockHasTheLargestOfItsSumsAsShift) {
  with_each_instruction_set([] {
    for (const int n : {1, 5, 16, 33, 1024}) {
      const auto size = std::size_t(n);
      std::vector<float> x(size, 1.0f), b(size, 2.0f), y(size);
      x.back() = 4;
      const BlockOfExp exps = exp_of_block(x.data(), b.data(), y.data(), x.data(), n);
      EXPECT_EQ(exps.shift, 6);
      EXPECT_EQ(y.back(), 1);
      EXPECT_NEAR(exps.sum, 1 + (n - 1) * std::exp(-3.0), 1e-6 * n);
      EXPECT_EQ(exp_of_block(x.data(), nullptr, y.data(), x.data(), n).shift, 4);
    }
  });
}

// Excluded classes have logits of −infinity.
TEST(LossRows, ABlockOfMinusInfinityAddsNothing) {
  std::vector<float> x(100, -kInfiniteLoss);
  const BlockOfExp exps = exp_of_block(x.data(), nullptr, x.data(), x.data(), 100);
  EXPECT_EQ(exps.sum, 0);
  EXPECT_EQ(std::exp(exps.shift), 0);
  EXPECT_EQ(*std::max_element(x.begin(), x.end()), 0);
}

TEST(LossRows, ABlockWithNanIsSeen) {
  with_each_instruction_set([] {
    for (std::size_t at : {0, 7, 32}) {
      std::vector<float> x(33, 1.0f);
      x[at] = kNanLoss;
      EXPECT_TRUE(std::isnan(exp_of_block(x.data(), nullptr, x.data(), x.data(), 33).sum)) << at;
    }
  });
}

}  // namespace
}  // namespace paceline
