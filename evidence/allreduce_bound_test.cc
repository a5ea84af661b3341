#include "evidence/allreduce_bound.h"

#include <gmock/gmock.h>

namespace paceline {
namespace {

constexpr double kMega = 1e6;

/// A variable of a million float32, needed at once and ready at the end of each step, which takes a
/// second.
class AllreduceBoundTest : public ::testing::Test {
 protected:
  AllreduceBoundTest() {
    work_.specs.push_back({.name = "a", .shape = {1'000'000}, .rule = Sgd{}});
    work_.bytes_in.push_back(4 * kMega);
    work_.bytes_out.push_back(4 * kMega);
  }
  SpeedBound bound(const JobHosts& hosts) const { return allreduce_bound(work_, schedule_, hosts); }
  StepCost work_;
  StepSchedule schedule_{1, {{0, 1}}};
};

TEST_F(AllreduceBoundTest, ADeviceMakesItsSteps) {
  const SpeedBound two = bound({.workers = {0, 0}});
  EXPECT_DOUBLE_EQ(two.steps_per_s, 2);
  EXPECT_EQ(two.limit, "the device");
}

TEST_F(AllreduceBoundTest, EachWorkerUpdatesItsOwnValues) {
  // A round reads four contributions, writes a sum, and makes four updates of 12 MB each: 68 MB,
  // which take a second. The path of the variable is longer: this second and a second of kernels.
  const SpeedBound four = bound({.workers = {0, 0, 0, 0}, .memory_bytes_per_s = 68 * kMega});
  EXPECT_NEAR(four.steps_per_s, 4 / 2.0, 1e-9);
  EXPECT_EQ(four.limit, "the way of a from ready to needed");
  ASSERT_EQ(four.terms.size(), 4);
  EXPECT_EQ(four.terms[0].what, "the device");
  EXPECT_NEAR(four.terms[0].steps_per_s, 1, 1e-9);
  EXPECT_NEAR(four.terms[1].steps_per_s, 0.5, 1e-9);
  EXPECT_EQ(four.terms[2].what, "the memory that sums and rules pass over");
  EXPECT_NEAR(four.terms[2].steps_per_s, 1, 1e-9);
}

TEST_F(AllreduceBoundTest, NoValueIsUpdatedBeforeAllSumsAreThere) {
  // Variable a is needed and ready first, and b last. A round takes longer than the path of either:
  // the updates of a move 24 MB, then the kernels take a second, and then the sum of b moves 12 MB.
  work_.specs.push_back({.name = "b", .shape = {1'000'000}, .rule = Sgd{}});
  work_.bytes_in.push_back(4 * kMega);
  work_.bytes_out.push_back(4 * kMega);
  schedule_.variables = {{0, 0.2}, {0.8, 1}};
  const SpeedBound two = bound({.workers = {0, 0}, .memory_bytes_per_s = 48 * kMega});
  EXPECT_NEAR(two.steps_per_s, 2 / (0.5 + 1 + 0.25), 1e-9);
  EXPECT_EQ(two.limit, "the way of a round");
}

TEST_F(AllreduceBoundTest, AHostSendsOnceForAllItsWorkers) {
  // Two hosts send and receive each byte once, which takes the link 8 seconds. The path of the
  // variable takes a second more, for the kernels of the step.
  const SpeedBound four = bound({.workers = {0, 0, 1, 1}, .link_bytes_per_s = 0.5 * kMega});
  EXPECT_NEAR(four.steps_per_s, 4 / 9.0, 1e-9);
  ASSERT_EQ(four.terms.size(), 5);  // the terms are the device, the path, two links and a round
  EXPECT_EQ(four.terms[2].what, "the link of host 0");
  EXPECT_NEAR(four.terms[2].steps_per_s, 1 / 8.0, 1e-9);
}

}  // namespace
}  // namespace paceline
