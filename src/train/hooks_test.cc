#include "paceline/hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A session with one weight prints a progress line after each step.
class ProgressTest : public ::testing::Test {
 protected:
  /// Returns the lines that two runs of three steps each print.
  std::string printed(std::int64_t own_steps) {
    ::testing::internal::CaptureStdout();
    Session session(minimize(loss_, Sgd{}), {}, run_);
    session.add(Progress(std::chrono::milliseconds(0), own_steps));
    for (int run = 0; run < 2; ++run) {
      int left = 3;
      session.run([&](Feed& feed) { left-- > 0 ? void() : feed.stop(); });
    }
    return ::testing::internal::GetCapturedStdout();
  }
  Graph graph_;
  Value loss_ = reduce_sum(square(graph_.variable("w", {1})));
  RunOptions run_;
};

TEST_F(ProgressTest, CountsOwnStepsDownOverAllRuns) {
  const std::string output = printed(6);
  EXPECT_THAT(output, HasSubstr("step 1 loss "));
  EXPECT_THAT(output.substr(output.find("step 6 ")), HasSubstr(" 0 s left"));
}

TEST_F(ProgressTest, SaysNoTimeLeftWhenNobodyKnowsTheEnd) {
  EXPECT_THAT(printed(0), Not(HasSubstr("left")));
}

}  // namespace
}  // namespace paceline
