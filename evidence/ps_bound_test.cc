#include "evidence/ps_bound.h"

#include <gmock/gmock.h>

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Field;

constexpr double kMegabyte = 1e6;

auto term(const char* what, double steps_per_s) {
  return AllOf(Field(&BoundTerm::what, what),
               Field(&BoundTerm::steps_per_s, DoubleNear(steps_per_s, 1e-9)));
}

/// A model with two variables of a million float32 each, whose steps take a second.
class PsBoundTest : public ::testing::Test {
 protected:
  PsBoundTest() {
    for (const char* name : {"a", "b"}) {
      work_.specs.push_back({.name = name, .shape = {1'000'000}, .rule = Sgd{}});
      work_.bytes_in.push_back(4 * kMegabyte);
      work_.bytes_out.push_back(4 * kMegabyte);
      work_.rule_bytes += 12 * kMegabyte;
    }
    schedule_ = {1, {{0, 1}, {0.4, 0.7}}};
  }
  SpeedBound bound(const JobHosts& hosts) const {
    return ps_bound(work_, schedule_, place_variables(work_.specs, int(hosts.ps.size())), hosts);
  }
  StepCost work_;
  StepSchedule schedule_;
};

TEST_F(PsBoundTest, ADeviceMakesItsSteps) {
  const SpeedBound two = bound({.ps = {0}, .workers = {0, 0}});
  EXPECT_DOUBLE_EQ(two.steps_per_s, 2);
  EXPECT_EQ(two.limit, "the device");
}

TEST_F(PsBoundTest, WorkersOfAnotherHostShareItsLink) {
  // A host takes 10 MB/s from workers that contribute 8 MB per step; the worker beside the ps needs
  // no link.
  const SpeedBound three =
      bound({.ps = {0}, .workers = {0, 1, 2}, .link_bytes_per_s = 10 * kMegabyte});
  EXPECT_THAT(three.workers,
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0.625, 1e-9), DoubleNear(0.625, 1e-9)));
  EXPECT_EQ(three.limit, "the link of host 0");
  // Each limit by itself, as the steps per second that it allows a worker.
  EXPECT_THAT(three.terms,
              ElementsAre(term("the device", 1), term("the way of a from ready to needed", 1 / 1.4),
                          term("the link of host 0", 0.625), term("the link of host 1", 1.25),
                          term("the link of host 2", 1.25)));
}

TEST_F(PsBoundTest, SeveralPsBringTheirLinks) {
  // Each ps keeps one variable, and the contribution to a takes a quarter of a second to another
  // host. No link carries more than 4 MB for each of four workers.
  const SpeedBound four =
      bound({.ps = {0, 1}, .workers = {0, 1, 2, 3}, .link_bytes_per_s = 16 * kMegabyte});
  EXPECT_THAT(four.workers, ElementsAre(DoubleNear(1, 1e-9), DoubleNear(0.8, 1e-9),
                                        DoubleNear(0.8, 1e-9), DoubleNear(0.8, 1e-9)));
}

TEST_F(PsBoundTest, RulesPassOverTheMemoryOfOneMachine) {
  const SpeedBound eight =
      bound({.ps = {0}, .workers = std::vector<int>(8, 0), .memory_bytes_per_s = 48 * kMegabyte});
  EXPECT_NEAR(eight.steps_per_s, 2, 1e-9);
  EXPECT_EQ(eight.limit, "the memory that rules pass over");
}

TEST_F(PsBoundTest, ARoundReadsEachGradientAndUpdatesOnce) {
  // Two updates of 12 MB, and for each three more gradients of 4 MB, make 48 MB for four steps.
  const SpeedBound four = bound({.ps = {0},
                                 .workers = std::vector<int>(4, 0),
                                 .memory_bytes_per_s = 12 * kMegabyte,
                                 .contributions = 4});
  EXPECT_THAT(four.terms, Contains(term("the memory that rules pass over", 0.25)));
  // The two updates take 4 s. When that of b ends, the kernels before b have run, and those that
  // read b and all later ones take 0.6 s more.
  EXPECT_NEAR(four.steps_per_s, 4 / (4 + 0.6), 1e-9);
  EXPECT_EQ(four.limit, "the way of a round");
}

TEST_F(PsBoundTest, ValuesOfARoundFollowItsContributions) {
  // Each of two workers gets 8 MB of values and contributes as much, at 10 MB/s; asynchronous
  // workers use both directions of the link at once.
  JobHosts hosts{.ps = {0}, .workers = {1, 2}, .link_bytes_per_s = 10 * kMegabyte};
  EXPECT_NEAR(bound(hosts).steps_per_s, 2 / 1.6, 1e-9);
  hosts.contributions = 2;
  const SpeedBound rounds = bound(hosts);
  EXPECT_NEAR(rounds.steps_per_s, 2 / (0.8 + 0.3 + 1.6), 1e-9);
  EXPECT_EQ(rounds.limit, "the way of a round");
}

TEST_F(PsBoundTest, AWorkerWaitsForItsOwnContribution) {
  // Variable a is needed at 0 and ready at 1; applying its 12 MB takes half a second.
  const SpeedBound one = bound({.ps = {0}, .workers = {0}, .memory_bytes_per_s = 24 * kMegabyte});
  EXPECT_NEAR(one.steps_per_s, 1 / 1.5, 1e-9);
  EXPECT_EQ(one.limit, "the way of a from ready to needed");
}

TEST_F(PsBoundTest, AContributionCrossesTheLinkToo) {
  const SpeedBound one = bound({.ps = {0}, .workers = {1}, .link_bytes_per_s = 40 * kMegabyte});
  EXPECT_NEAR(one.steps_per_s, 1 / 1.1, 1e-9);
}

}  // namespace
}  // namespace paceline
