#include "paceline/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace paceline {
namespace {

template <typename Half>
void expect_round_trips() {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = std::uint16_t(bits);
    const Half back{float(half)};
    if (std::isnan(float(half))) {
      ASSERT_TRUE(std::isnan(float(back))) << std::hex << bits;
    } else {
      ASSERT_EQ(back.bits, half.bits) << std::hex << bits;
    }
  }
}

// The midpoint of two neighbours is rounded to the even one, and a number beside the midpoint to
// the nearer one.
template <typename Half>
void expect_rounds_to_nearest_even(std::uint16_t last) {
  for (std::uint16_t bits = 0; bits < last; ++bits) {
    Half low, high;
    low.bits = bits;
    high.bits = std::uint16_t(bits + 1);
    const float middle = float(low) / 2 + float(high) / 2;
    ASSERT_EQ(Half(middle).bits, bits % 2 == 0 ? low.bits : high.bits) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, low.bits) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, HUGE_VALF)).bits, high.bits) << bits;
    ASSERT_EQ(Half(-middle).bits, Half(middle).bits | 0x8000) << bits;
  }
}

TEST(DType, SizesAndNames) {
  EXPECT_EQ(size_of(DType::kFloat64), 8U);
  EXPECT_EQ(size_of(DType::kBFloat16), 2U);
  EXPECT_EQ(size_of(DType::kBool), 1U);
  EXPECT_EQ(name_of(DType::kInt64), "int64");
  EXPECT_EQ(name_of(DType::kUInt8), "uint8");
  EXPECT_TRUE(is_floating(DType::kFloat16));
  EXPECT_FALSE(is_floating(DType::kInt32));
}

TEST(BFloat16, EveryValueRoundTrips) { expect_round_trips<BFloat16>(); }

TEST(BFloat16, RoundsToNearestEven) { expect_rounds_to_nearest_even<BFloat16>(0x7f7f); }

TEST(BFloat16, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-HUGE_VALF).bits, 0xff80);
  const float low_bits_only = std::bit_cast<float>(0x7f800001U);
  EXPECT_TRUE(std::isnan(float(BFloat16(low_bits_only))));
}

TEST(Float16, EveryValueRoundTrips) { expect_round_trips<Float16>(); }

TEST(Float16, RoundsToNearestEvenAlsoBelowTheNormalRange) {
  expect_rounds_to_nearest_even<Float16>(0x7bff);
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(Float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(Float16(-2.0f).bits, 0xc000);
  EXPECT_EQ(Float16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(Float16(0x1p-14f).bits, 0x0400);
  EXPECT_EQ(Float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(Float16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(Float16(65504.0f).bits, 0x7bff);
}

TEST(Float16, OverflowsToInfinityFromTheMidpointOn) {
  EXPECT_EQ(Float16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-1e30f).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(float(Float16(std::nanf("")))));
}

}  // namespace
}  // namespace paceline
