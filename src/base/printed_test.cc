#include "base/printed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Printed, NoNanHasASign) {
  EXPECT_EQ(fmt::format("{:.4f}", printed(-std::numeric_limits<double>::quiet_NaN())), "nan");
  EXPECT_EQ(fmt::format("{:.1f}", printed(-2.5)), "-2.5");
}

TEST(Printed, ARateHasFourDigitsAndNoExponent) {
  EXPECT_EQ(rounded(40), "40");
  EXPECT_EQ(rounded(98.766), "98.77");
  EXPECT_EQ(rounded(999.96), "1,000");
  EXPECT_EQ(rounded(999.6), "999.6");
  EXPECT_EQ(rounded(999.6, 3), "1,000");
  EXPECT_EQ(rounded(4932.8, 3), "4,933");
  EXPECT_EQ(rounded(97.128, 3), "97.1");
  EXPECT_EQ(rounded(83526.72), "83,527");
  EXPECT_EQ(rounded(1.46e5), "146,000");
  EXPECT_EQ(rounded(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Printed, ARatioHasTwoDecimalsOrThreeDigits) {
  EXPECT_EQ(times_of(1.944), "1.94");
  EXPECT_EQ(times_of(0.0946), "0.095");
  EXPECT_EQ(times_of(0.0046), "0.005");
  EXPECT_EQ(times_of(111.6), "112");
}

TEST(Printed, OneThingIsSingular) {
  EXPECT_EQ(counted(1, "global step"), "1 global step");
  EXPECT_EQ(counted(0, "global step"), "0 global steps");
  EXPECT_EQ(counted(3000, "global step"), "3,000 global steps");
}

}  // namespace
}  // namespace paceline
