#include "explain/run_facts.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Others, LeaveOutOneOfTheNumbers) {
  const Others others({3, 1, 2, 2, 9});
  EXPECT_EQ(others.least(1), 2);
  EXPECT_EQ(others.least(9), 1);
  EXPECT_EQ(others.most(9), 3);
  EXPECT_EQ(others.most(1), 9);
  EXPECT_EQ(others.median(1), 3) << "2, 2, 3, 9: the upper one of the two in the middle";
  EXPECT_EQ(others.median(9), 2);
  EXPECT_EQ(others.median(2), 3) << "1, 2, 3, 9";
  EXPECT_EQ(Others({5}).most(5), 5);
}

}  // namespace
}  // namespace paceline
