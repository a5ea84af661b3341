#include "predict/tcp_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

TEST(TcpRatesTest, AreThoseOfACore) {
  constexpr double kLeast = 1e7, kMost = 1e12;  // bytes a second, of anything that runs this
  TcpMeter meter;
  for (const StreamEnds ends : {StreamEnds::kOnTwoCores, StreamEnds::kOnOneCore}) {
    const TcpRates rates = meter.measure(ends);
    EXPECT_THAT(rates.send, AllOf(Gt(kLeast), Lt(kMost)));
    EXPECT_THAT(rates.receive, AllOf(Gt(kLeast), Lt(kMost)));
  }
}

}  // namespace
}  // namespace paceline
