// Tests synchronous rounds in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predict/simulation/simulate.h"
#include "predict/simulation/testing/small_jobs.h"

namespace paceline {
namespace {

using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::Lt;

TEST(SimulatedRoundsTest, ASynchronousRoundWaitsForAllAndForItsValues) {
  const SimulatedStep step = two_layers();
  const auto with = [&](const char* strategy) {
    return simulate({.step = &step, .cluster = hosts(2, 4, 1e9), .strategy = {strategy}});
  };
  const SimulatedSpeed async = with("async"), sync = with("sync");
  EXPECT_THAT(sync.steps_per_s, Lt(0.95 * async.steps_per_s));
  EXPECT_THAT(sync.use.answer + sync.use.values, Gt(async.use.answer + async.use.values));
}

TEST(SimulatedRoundsTest, AStragglerHoldsUpWhoeverWaitsForIt) {
  const SimulatedStep step = two_layers();
  const auto with = [&](const char* strategy, int replicas) {
    SimulatedJob job{.step = &step,
                     .cluster = hosts(1, 3, 100e9),
                     .strategy = {.name = strategy, .replicas = replicas},
                     .costs = free_of_cost()};
    job.cluster.slowness = {1, 3, 1};
    return simulate(job);
  };
  EXPECT_THAT(with("async", 0).steps_per_s, DoubleNear(2 * 100 + 33, 10));
  EXPECT_THAT(with("sync", 0).steps_per_s, DoubleNear(3 * 33, 5));
  EXPECT_THAT(with("ssp", 0).steps_per_s, DoubleNear(3 * 33, 5));
  // With a backup worker, the two fast workers close the rounds.
  const SimulatedSpeed backup = with("sync", 2);
  EXPECT_THAT(backup.workers[0], DoubleNear(95, 7));
  EXPECT_THAT(backup.workers[1], DoubleNear(33, 5));
}

// One of three workers takes three times as long, and two contributions close a round. Each late
// contribution that is folded takes the place of another contribution, whose worker then waits for
// the next round.
TEST(SimulatedRoundsTest, ALateContributionThatIsFoldedTakesAPlaceInARound) {
  const SimulatedStep step = two_layers();
  SimulatedJob job{.step = &step,
                   .cluster = hosts(1, 3, 100e9),
                   .strategy = {.name = "sync", .replicas = 2},
                   .costs = free_of_cost(),
                   .steps = 60};
  job.cluster.slowness = {1, 1, 3};
  const double dropped = simulate(job).steps_per_s;
  EXPECT_THAT(dropped, DoubleNear(233, 25));
  job.strategy.late = LateContribution::kFold;
  EXPECT_THAT(simulate(job).steps_per_s / dropped, DoubleNear(6.0 / 7, 0.05));
}

/// Returns a job whose links take no time, and whose rules and sums pass over no bytes.
SimulatedJob rounds_without_rules(SimulatedStep& step, int workers) {
  for (StepVariable& use : step.variables) use.rule_bytes = 0;
  SimulatedJob job{.step = &step,
                   .cluster = hosts(1, workers, 100e9),
                   .strategy = {"sync"},
                   .costs = free_of_cost()};
  job.costs.contributions_of_rules = 1e9;
  return job;
}

// The ps reads 8 MiB and writes them once, whether it then sends them to one worker or to three.
TEST(SimulatedRoundsTest, OneCopyOfTheValuesServesAllWorkers) {
  SimulatedStep step = two_layers();
  const double copied = 2.0 * (8 << 20);
  for (const int workers : {1, 3}) {
    const SimulatedSpeed speed = simulate(rounds_without_rules(step, workers));
    const double moved = speed.use.moved[0] / (speed.steps_per_s / workers);
    EXPECT_THAT(moved, DoubleNear(copied, 0.1 * copied)) << workers;
  }
}

// The costs of TCP include those of the memory at both ends. With a slower memory, a step takes
// longer by one copy of the values, part of which overlaps other work.
TEST(SimulatedRoundsTest, TransfersPassOverTheMemoryInTheirOwnTime) {
  SimulatedStep step = two_layers();
  SimulatedJob job = rounds_without_rules(step, 3);
  SimulatedMachine& ps = job.cluster.machines[0];
  ps.cores = 1;
  const auto round_s = [&](double thread_bytes_per_s) {
    ps.thread_bytes_per_s = thread_bytes_per_s;
    return 3 / simulate(job).steps_per_s;
  };
  EXPECT_THAT(round_s(1e9) - round_s(100e9), DoubleNear(2 * 8.4e-3, 4e-3));
}

// When a ps sums n contributions, it reads them at a part of the rules' rate. It sums them in the
// pass of the rule, or in an earlier pass if the norm of the sum is needed first.
TEST(SimulatedRoundsTest, ContributionsAreReadAtTheRateOfTheirSum) {
  SimulatedStep step = two_layers();
  SimulatedJob job = rounds_without_rules(step, 3);
  job.cluster.machines[0].bytes_per_s = 10e9;
  const auto round_s = [&](bool clipped, double of_rules) {
    step.clipped = clipped;
    job.costs.contributions_of_rules = of_rules;
    return 3 / simulate(job).steps_per_s;
  };
  const double read_s = 3 * 2 * 4.2e6 / 10e9;  // two variables from three workers
  for (const bool clipped : {false, true}) {
    EXPECT_THAT(round_s(clipped, 0.5) - round_s(clipped, 1), DoubleNear(read_s, 0.2 * read_s))
        << clipped;
  }
}

// The step names 64 rows, in a table of 10,240 rows or of 1,280.
TEST(SimulatedRoundsTest, ASparseContributionIsSummedByItsRows) {
  SimulatedStep step = with_a_large_table();
  step.clipped = true;
  SimulatedJob job = rounds_without_rules(step, 3);
  job.cluster.machines[0].bytes_per_s = 10e9;
  job.costs.contributions_of_rules = 0.5;
  const double of_large = 3 / simulate(job).steps_per_s;
  step.specs[0].shape = {1280, 1024};
  EXPECT_THAT(3 / simulate(job).steps_per_s, DoubleNear(of_large, 0.02 * of_large));
}

}  // namespace
}  // namespace paceline
