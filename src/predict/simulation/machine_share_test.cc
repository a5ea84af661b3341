#include "predict/simulation/machine_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::Lt;

/// Begins all works at once, and returns the time at which each of them is done.
std::vector<double> ends_of(const SimulatedMachine& machine,
                            const std::vector<SimulatedWork>& works, std::uint64_t seed = 1) {
  VirtualTime time(seed);
  MachineShare share(time, machine);
  std::vector<double> ends(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    share.run(works[i], [&, i] { ends[i] = time.seconds(); });
  }
  time.run();
  return ends;
}

TEST(MachineShareTest, WorkAloneTakesTheLongerOfComputingAndMemory) {
  const SimulatedMachine machine{.cores = 2, .bytes_per_s = 10};
  EXPECT_THAT(ends_of(machine, {{.core_seconds = 4, .threads = 2}})[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends_of(machine, {{.core_seconds = 1, .bytes = 30}})[0], DoubleNear(3, 1e-6));
}

TEST(MachineShareTest, WorkHasNoMoreThreadsThanThereAreCores) {
  const SimulatedMachine machine{.cores = 2};
  EXPECT_THAT(ends_of(machine, {{.core_seconds = 4, .threads = 4}})[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends_of(machine, {{.core_seconds = 0.004, .threads = 4}})[0],
              DoubleNear(0.002, 1e-6));
}

TEST(MachineShareTest, OneThreadDoesNotReachAllOfTheMemory) {
  const SimulatedMachine machine{.cores = 2, .bytes_per_s = 10, .thread_bytes_per_s = 5};
  EXPECT_THAT(ends_of(machine, {{.bytes = 10}})[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends_of(machine, {{.bytes = 10, .threads = 2}})[0], DoubleNear(1, 1e-6));
}

TEST(MachineShareTest, PassesOverSeveralArraysHaveARateOfTheirOwn) {
  SimulatedMachine machine{.cores = 2, .bytes_per_s = 10, .thread_bytes_per_s = 6};
  EXPECT_THAT(ends_of(machine, {{.rule_bytes = 10, .threads = 2}})[0], DoubleNear(1, 1e-6));
  machine.rule_bytes_per_s = 5;
  EXPECT_THAT(ends_of(machine, {{.rule_bytes = 10, .threads = 2}})[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends_of(machine, {{.bytes = 10, .rule_bytes = 10, .threads = 2}})[0],
              DoubleNear(3, 1e-6));
  machine.thread_rule_bytes_per_s = 4;
  EXPECT_THAT(ends_of(machine, {{.rule_bytes = 10}})[0], DoubleNear(2.5, 1e-6));
}

TEST(MachineShareTest, MoreThreadsThanCoresTakeTurns) {
  const std::vector<double> ends =
      ends_of({.cores = 2},
              {{.core_seconds = 1}, {.core_seconds = 1}, {.core_seconds = 1}, {.core_seconds = 1}});
  for (const double end : ends) EXPECT_THAT(end, DoubleNear(2, 1e-6));
}

TEST(MachineShareTest, ShortWorkGetsItsCoreFirstAndRunsToItsEndInAnyOrder) {
  int first = 0;
  constexpr int kSeeds = 100;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<double> ends =
        ends_of({.cores = 1}, {{.core_seconds = 1}, {.core_seconds = 1e-3}, {.core_seconds = 1e-3}},
                std::uint64_t(seed));
    const double sooner = std::min(ends[1], ends[2]), later = std::max(ends[1], ends[2]);
    EXPECT_THAT(sooner, DoubleNear(1e-3, 1e-6));
    EXPECT_THAT(later, DoubleNear(2e-3, 1e-6));
    EXPECT_THAT(ends[0], DoubleNear(1.002, 1e-6));
    first += ends[1] < ends[2] ? 1 : 0;
  }
  EXPECT_THAT(first, AllOf(Gt(kSeeds / 4), Lt(3 * kSeeds / 4)));
}

TEST(MachineShareTest, TheMemoryIsSharedByTraffic) {
  const SimulatedMachine machine{.cores = 4, .bytes_per_s = 10};
  const std::vector<double> ends = ends_of(machine, {{.bytes = 10}, {.bytes = 10}});
  EXPECT_THAT(ends[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends[1], DoubleNear(2, 1e-6));
}

TEST(MachineShareTest, WhoeverStaysGetsWhatTheOtherLeaves) {
  const std::vector<double> ends =
      ends_of({.cores = 1}, {{.core_seconds = 1}, {.core_seconds = 2}});
  EXPECT_THAT(ends[0], DoubleNear(2, 1e-6));
  EXPECT_THAT(ends[1], DoubleNear(3, 1e-6));
}

}  // namespace
}  // namespace paceline
