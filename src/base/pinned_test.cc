#include "base/pinned.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/cores.h"
#include "base/testing/own_cores.h"

namespace paceline {
namespace {

TEST(PinnedTest, AThreadStaysOnThatCoreWithThoseThatItStarts) {
  if (usable_cores() < 2) GTEST_SKIP() << "needs two cores";
  const cpu_set_t before = own_cores();
  {
    const Pinned second(1);
    const cpu_set_t here = own_cores();
    EXPECT_EQ(CPU_COUNT(&here), 1);
    std::thread([&] {
      const cpu_set_t there = own_cores();
      EXPECT_TRUE(CPU_EQUAL(&here, &there));
      second.leave();
      const cpu_set_t left = own_cores();
      EXPECT_EQ(CPU_COUNT(&left), CPU_COUNT(&before) - 1);
    }).join();
  }
  const cpu_set_t after = own_cores();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace paceline
