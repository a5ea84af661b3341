#include "predict/machine_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/buffer.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

TEST(TcpRatesTest, AreThoseOfACore) {
  constexpr double kLeast = 1e7, kMost = 1e12;  // bytes per second, on any machine that runs this
  const Buffer memory(TcpMeter::kBytes);
  const TcpMeter meter(memory.span());
  for (const StreamEnds ends : {StreamEnds::kOnTwoCores, StreamEnds::kOnOneCore}) {
    const TcpRates rates = meter.measure(ends);
    EXPECT_THAT(rates.send, AllOf(Gt(kLeast), Lt(kMost)));
    EXPECT_THAT(rates.receive, AllOf(Gt(kLeast), Lt(kMost)));
  }
}

}  // namespace
}  // namespace paceline
