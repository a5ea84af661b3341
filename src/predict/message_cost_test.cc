#include "predict/message_cost.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(MessageCostTest, IsThatOfASmallMessage) {
  for (const char* link : {"tcp", "shm"}) {
    const MessageCost cost = measured_message_cost(link);
    // Seconds, on any machine that runs this.
    EXPECT_GT(cost.core_s, 1e-8) << link;
    EXPECT_LT(cost.core_s, 0.1) << link;
    EXPECT_GT(cost.trip_s, 1e-8) << link;
  }
}

TEST(MessageCostTest, OfALinkThatCannotBeOpenedIsNotKnown) {
  EXPECT_EQ(measured_message_cost("inproc").core_s, 0);  // reaches only itself
}

}  // namespace
}  // namespace paceline
