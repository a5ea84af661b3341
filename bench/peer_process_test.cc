#include "bench/peer_process.h"

#include <gtest/gtest.h>

#include "base/cores.h"
#include "base/pinned.h"
#include "base/testing/own_cores.h"
#include "bench/shared_word.h"

namespace paceline::bench {
namespace {

TEST(PeerProcess, AnotherPinInBetweenChangesNothing) {
  const SharedObject<cpu_set_t> far;
  const SharedObject<SharedWord> known;
  const Pinned near(0);
  { const Pinned other(0); }
  const PeerProcess end(
      [&] {
        *far = own_cores();
        known->set(1);
      },
      &near);
  known->wait_for(1);
  const cpu_set_t here = own_cores();
  EXPECT_EQ(CPU_COUNT(&here), 1);
  EXPECT_FALSE(CPU_EQUAL(&*far, &here) && usable_cores() > 1);
}

TEST(PeerProcess, BothEndsHaveCoresOfTheirOwnAndItEnds) {
  const cpu_set_t before = own_cores();
  const SharedObject<cpu_set_t> far;
  const SharedObject<SharedWord> known;
  {
    const Pinned near(0);
    const PeerProcess end(
        [&] {
          *far = own_cores();
          known->set(1);
        },
        &near);
    known->wait_for(1);
    cpu_set_t both;
    const cpu_set_t here = own_cores();
    CPU_AND(&both, &*far, &here);
    EXPECT_EQ(CPU_COUNT(&here), 1);
    EXPECT_EQ(CPU_COUNT(&both), CPU_COUNT(&before) > 1 ? 0 : 1);
  }
  const cpu_set_t after = own_cores();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace paceline::bench
