#include "base/grouped_digits.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(GroupedDigits, ByThrees) {
  EXPECT_EQ(grouped_digits(0), "0");
  EXPECT_EQ(grouped_digits(999), "999");
  EXPECT_EQ(grouped_digits(1000), "1,000");
  EXPECT_EQ(grouped_digits(1234567), "1,234,567");
  EXPECT_EQ(grouped_digits(-100), "-100");
  EXPECT_EQ(grouped_digits(-1000), "-1,000");
}

}  // namespace
}  // namespace paceline
