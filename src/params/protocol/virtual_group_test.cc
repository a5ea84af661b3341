// All-reduce in virtual time: workers are killed, stopped, cut off, late or retired. In every case,
// the workers that live have applied the same steps.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

VirtualGroupResult run(std::uint64_t seed, const VirtualGroupOptions& options) {
  return VirtualGroup(seed, options).run();
}

TEST(VirtualGroup, WithoutFaultsEveryStepHasAllContributors) {
  const VirtualGroupResult result = run(1, {.workers = 4, .faults = 0});
  EXPECT_EQ(result.trouble, "");
  EXPECT_GT(result.steps, 100);
  EXPECT_GT(result.records, 3 * 40 * result.steps);
}

TEST(VirtualGroup, ASeedReplaysExactly) {
  EXPECT_EQ(run(7, {}).hash, run(7, {}).hash);
  EXPECT_NE(run(7, {}).hash, run(8, {}).hash);
}

// Runs seeds [first, last], with this many exchanges in the middle of each step.
void run_seeds(std::uint64_t first, std::uint64_t last, int exchanges = 0) {
  int kills = 0, stops = 0, cuts = 0, retired = 0, repeated = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const VirtualGroupResult result =
        run(seed, {.workers = 2 + int(seed % 5), .exchanges = exchanges});
    ASSERT_EQ(result.trouble, "") << "seed " << seed;
    EXPECT_GT(result.steps, 50) << "seed " << seed;
    kills += result.kills;
    stops += result.stops;
    cuts += result.cuts;
    retired += result.retired;
    repeated += result.repeated;
  }
  EXPECT_GT(kills, 0);
  EXPECT_GT(stops, 0);
  EXPECT_GT(cuts, 0);
  EXPECT_GT(retired, 0);
  EXPECT_TRUE(exchanges == 0 || repeated > 0);
}

TEST(VirtualGroup, LivingWorkersApplyTheSameStepsWhateverHappens) { run_seeds(1, 200); }

TEST(VirtualGroup, NobodyWaitsForSumsOfTheLostInTheMiddleOfAStep) { run_seeds(1, 200, 3); }

// Tests early stopping: some workers are killed while the others end.
void run_ends(std::uint64_t first, std::uint64_t last) {
  int saves = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const VirtualGroupResult result =
        run(seed,
            {.workers = 2 + int(seed % 5), .faults = 2, .faulty = 5s, .quiet = 40s, .ends = true});
    ASSERT_EQ(result.trouble, "") << "seed " << seed << "\n"
                                  << fmt::format("{}", fmt::join(result.lines, "\n"));
    saves += result.saves;
  }
  EXPECT_GT(saves, int(last - first + 1)) << "no worker was lost while it saved";
}

TEST(VirtualGroup, OneWorkerSavesTheEndWhoeverIsLost) { run_ends(1, 120); }

// scripts/slow_checks runs these disabled tests.
TEST(VirtualGroup, DISABLED_OneWorkerSavesTheEndInTenThousandSeeds) { run_ends(1, 10000); }

TEST(VirtualGroup, DISABLED_LivingWorkersApplyTheSameStepsInTenThousandSeeds) {
  run_seeds(1, 10000);
}

// Hybrid: a step counts for the members and on the ps tasks, or nowhere.
void run_hybrid_seeds(std::uint64_t first, std::uint64_t last) {
  int kills = 0, stops = 0, cuts = 0, ps_cuts = 0, joined = 0, left_behind = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const VirtualGroupResult result =
        run(seed, {.workers = 2 + int(seed % 5), .join_timeout = 30s, .hybrid = true});
    ASSERT_EQ(result.trouble, "") << "seed " << seed << "\n"
                                  << fmt::format("{}", fmt::join(result.lines, "\n"));
    EXPECT_GT(result.steps, 50) << "seed " << seed;
    kills += result.kills;
    stops += result.stops;
    cuts += result.cuts;
    ps_cuts += result.ps_cuts;
    joined += result.joined;
    left_behind += result.left_behind;
  }
  EXPECT_GT(kills, 100);
  EXPECT_GT(stops, 100);
  EXPECT_GT(cuts, 100);
  EXPECT_GT(ps_cuts, 100);
  EXPECT_GT(joined, 100);
  EXPECT_GT(left_behind, 0);
}

TEST(VirtualHybrid, StepsCountInBothPartsOrInNoneWhateverHappens) { run_hybrid_seeds(1, 200); }

// scripts/slow_checks runs this disabled test.
TEST(VirtualHybrid, DISABLED_StepsCountInBothPartsInTenThousandSeeds) {
  run_hybrid_seeds(1, 10000);
}

TEST(VirtualHybrid, FindsAMemberThatDoesNotWaitForThePsTasks) {
  std::string found;
  for (std::uint64_t seed = 1; seed <= 20 && found.empty(); ++seed) {
    found = run(seed, {.hybrid = true, .plant_hasty = true}).trouble;
  }
  EXPECT_NE(found.find("which is not here"), std::string::npos) << found;
}

TEST(VirtualGroup, ManyWorkersApplyTheSameSteps) {
  const VirtualGroupResult result = run(3, {.workers = 24, .faults = 20});
  EXPECT_EQ(result.trouble, "");
}

}  // namespace
}  // namespace paceline
