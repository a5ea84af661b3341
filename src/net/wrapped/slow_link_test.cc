#include "net/wrapped/slow_link.h"

#include <gtest/gtest.h>

#include "net/testing/conformance.h"

namespace paceline {
namespace {

TEST(SlowLink, AddsItsTimeToEachFrame) {
  ManualClock clock;
  const TimePoint start = clock.now();
  const TestNetwork network;
  TestReceiver receiver;
  Listener listener(slow_link(network.make("inproc"), clock, std::chrono::milliseconds(10)),
                    "task:0");
  const auto link = network.make("inproc");
  const auto connection = link->connect(listener.address(), receiver, Deadline::after(kPatience));
  for (int i = 0; i < 3; ++i) connection->send({}, {});
  ASSERT_TRUE(listener.receiver(0)->wait_frames(3));
  EXPECT_EQ(clock.now() - start, std::chrono::milliseconds(30));
}

}  // namespace
}  // namespace paceline
