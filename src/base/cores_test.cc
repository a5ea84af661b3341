#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace paceline {
namespace {

TEST(UsableCores, AQuotaIsRoundedUpAndNeverAddsCores) {
  EXPECT_EQ(usable_cores(8, 1.5), 2);
  EXPECT_EQ(usable_cores(8, 2.0), 2);
  EXPECT_EQ(usable_cores(8, 0.2), 1);
  EXPECT_EQ(usable_cores(2, 16.0), 2);
  EXPECT_EQ(usable_cores(4, std::nullopt), 4);
  EXPECT_EQ(usable_cores(0, std::nullopt), 1);
}

TEST(UsableCores, AreThoseOfTheProcesssMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace paceline
