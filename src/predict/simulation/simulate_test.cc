#include "predict/simulation/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "paceline/error.h"
#include "params/strategy/strategies.h"
#include "predict/pack_cost.h"
#include "predict/simulation/known_messages.h"
#include "predict/simulation/testing/small_jobs.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::Lt;

/// Simulates a job in which only kernels, bytes and rules take time.
SimulatedSpeed simulate_free(const SimulatedStep& step, const SimulatedCluster& cluster,
                             const std::string& strategy, const WireForm& wire = {}) {
  return simulate({.step = &step,
                   .cluster = cluster,
                   .strategy = {strategy},
                   .wire = wire,
                   .costs = free_of_cost()});
}

TEST(SimulateTest, OneProcessTakesItsKernelsAndRules) {
  const SimulatedStep step = two_layers();
  SimulatedCluster cluster = one_host(0, 1);
  cluster.machines[0].bytes_per_s = 24.0 * 1024 * 1024 / 10e-3;  // rules take 10 ms
  const SimulatedSpeed speed = simulate_free(step, cluster, "alone");
  EXPECT_THAT(speed.steps_per_s, DoubleNear(50, 0.1));
  EXPECT_THAT(speed.use.device, DoubleNear(0.5, 0.01));
  EXPECT_THAT(speed.use.rules, DoubleNear(0.5, 0.01));
}

TEST(SimulateTest, WorkersOfFastLinksAreAsFastAsTheirDevices) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed speed = simulate_free(step, hosts(1, 4, 100e9), "async");
  EXPECT_THAT(speed.steps_per_s, DoubleNear(400, 20));
  EXPECT_THAT(speed.workers.size(), 4u);
}

// Two workers on one core share the core, unless they wait for something else most of the time.
TEST(SimulateTest, WorkersThatWaitForADeviceLeaveTheCoresToOthers) {
  SimulatedStep step = two_layers();
  step.threads = 1;
  SimulatedCluster cluster = one_host(1, 2);
  cluster.machines[0].cores = 1;
  const double busy = simulate_free(step, cluster, "async").steps_per_s;
  step.busy = 0.1;
  EXPECT_THAT(simulate_free(step, cluster, "async").steps_per_s, DoubleNear(2 * busy, 0.2 * busy));
  step.busy = 0.75;  // together the workers ask for 1.5 cores
  EXPECT_THAT(simulate_free(step, cluster, "async").steps_per_s,
              DoubleNear(busy / 0.75, 0.1 * busy));
}

// The worker hands over two messages, each in 1 ms; in shared memory there is nothing to hand over.
TEST(SimulateTest, AStepHandsItsContributionsOver) {
  const SimulatedStep step = two_layers();
  TransportCosts costs = free_of_cost();
  costs.hand_over_s = 1e-3;
  const auto alone = [&](const SimulatedCluster& cluster) {
    return simulate({.step = &step, .cluster = cluster, .strategy = {"async"}, .costs = costs})
        .steps_per_s;
  };
  EXPECT_THAT(alone(hosts(1, 1, 100e9)), DoubleNear(1 / 12e-3, 3));
  EXPECT_THAT(alone(one_host(1, 1)), DoubleNear(1 / 10e-3, 3));
}

TEST(SimulateTest, TheLinkOfThePsIsShared) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed speed = simulate_free(step, hosts(1, 4, 100e6), "async");
  EXPECT_THAT(speed.steps_per_s, DoubleNear(100e6 / (8 << 20), 0.5));
  EXPECT_THAT(speed.use.sent[0], DoubleNear(100e6, 5e6));
  const SimulatedSpeed halves =
      simulate_free(step, hosts(1, 4, 100e6), "async", {DType::kBFloat16});
  EXPECT_THAT(halves.steps_per_s, DoubleNear(2 * speed.steps_per_s, 1));
}

TEST(SimulateTest, ValuesComeOnceAStepWhereWorkersAlwaysWait) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed speed = simulate_free(step, hosts(1, 4, 100e6), "ssp");
  const double values = 8 << 20;
  EXPECT_THAT(speed.use.sent[0] / speed.steps_per_s, DoubleNear(values, 0.05 * values));
}

// Values travel as bfloat16 if contributions travel as int8, and as float32 if only the largest
// contributions travel.
TEST(SimulateTest, EveryFormOfContributionsHasItsBytesAndItsTime) {
  const SimulatedStep step = two_layers();
  const auto with = [&](const WireForm& wire, double bytes_per_s) {
    return simulate_free(step, hosts(1, 4, bytes_per_s), "async", wire);
  };
  const double floats = 8 << 20;
  const SimulatedSpeed int8 = with({{DType::kUInt8}}, 100e6),
                       top = with({{DType::kFloat32, 8}}, 100e6);
  EXPECT_THAT(int8.use.sent[0], DoubleNear(100e6, 5e6));
  EXPECT_THAT(int8.use.received[0] / int8.use.sent[0], DoubleNear(0.504, 0.02));
  EXPECT_THAT(int8.steps_per_s, DoubleNear(2 * 100e6 / floats, 1));
  EXPECT_THAT(top.steps_per_s, DoubleNear(100e6 / floats, 0.5));
  EXPECT_THAT(top.use.received[0] / top.use.sent[0], DoubleNear(40.0 / 1024, 0.01));
  // If links are fast, the worker's thread limits the speed, since packing takes its time.
  const double packing = floats * pack_s_per_byte(DType::kUInt8, true);
  EXPECT_THAT(with({{DType::kUInt8}, true}, 100e9).steps_per_s,
              DoubleNear(4 / (10e-3 + packing), 15));
}

TEST(SimulateTest, TwoPsHaveTwoLinks) {
  const SimulatedStep step = two_layers();
  const auto with = [&](int ps) {
    return simulate({.step = &step, .cluster = hosts(ps, 8, 100e6), .strategy = {"async"}})
        .steps_per_s;
  };
  EXPECT_THAT(with(2) / with(1), DoubleNear(2, 0.1));
}

// Rows of 40,000 bytes start at a page boundary only every 64 rows, and the variable has fewer rows
// than that.
TEST(SimulateTest, ValuesThatCannotBeMappedAreSentThroughSharedMemory) {
  SimulatedStep step = two_layers();
  TransportCosts costs = free_of_cost();
  costs.ring_s_per_byte = 4e-9;
  const auto with = [&](const Shape& shape) {
    for (VariableSpec& spec : step.specs) spec.shape = shape;
    return simulate(
               {.step = &step, .cluster = one_host(3, 2), .strategy = {"async"}, .costs = costs})
        .steps_per_s;
  };
  EXPECT_THAT(with({500, 1024}), DoubleNear(200, 10));
  EXPECT_THAT(with({50, 10000}), Lt(160));
  // A variable that cannot be mapped is not read in a copy either, although several kernels read
  // it.
  for (StepVariable& use : step.variables) use.reread = true;
  EXPECT_THAT(with({50, 10000}), Lt(160));
}

// Each of the two workers reads 8 MiB once more for the norm, and the two share the memory.
TEST(SimulateTest, AnAllReduceThatClipsReadsItsSumsForTheirNorm) {
  SimulatedStep step = two_layers();
  SimulatedCluster cluster = one_host(0, 2);
  cluster.machines[0].bytes_per_s = 1e9;
  const auto step_s = [&](bool clips) {
    step.clipped = clips;
    const SimulatedSpeed speed = simulate_free(step, cluster, "allreduce");
    return 2 / speed.steps_per_s;
  };
  EXPECT_THAT(step_s(true) - step_s(false), DoubleNear(2 * 8.4e-3, 1e-3));
}

// Each of the two workers sums half of 8 MiB, as slowly as a ps sums contributions.
TEST(SimulateTest, AnAllReduceInPlaceReadsContributionsAtTheRateOfTheirSum) {
  SimulatedStep step = two_layers();
  for (StepVariable& use : step.variables) use.rule_bytes = 0;
  SimulatedCluster cluster = one_host(0, 2);
  cluster.machines[0].bytes_per_s = 1e9;
  const auto step_s = [&](double of_rules) {
    TransportCosts costs = free_of_cost();
    costs.contributions_of_rules = of_rules;
    const SimulatedSpeed speed =
        simulate({.step = &step, .cluster = cluster, .strategy = {"allreduce"}, .costs = costs});
    return 2 / speed.steps_per_s;
  };
  EXPECT_THAT(step_s(0.5) - step_s(1), DoubleNear(2 * 8.4e-3, 3e-3));
}

// In a ring of two, each member scales half of 8 MiB, adds to the half that arrives, and keeps the
// sum that returns. These are three, three and two passes over 4.2 MB, beside 10 ms of kernels.
TEST(SimulateTest, ARingPassesOverItsSumsAtTheRateOfPlainPasses) {
  SimulatedStep step = two_layers();
  for (StepVariable& use : step.variables) use.rule_bytes = 0;
  const auto step_s = [&](double bytes_per_s, double rule_bytes_per_s) {
    SimulatedCluster cluster = hosts(0, 2, 100e9);
    for (SimulatedMachine& machine : cluster.machines) {
      machine.bytes_per_s = bytes_per_s;
      machine.rule_bytes_per_s = rule_bytes_per_s;
    }
    const SimulatedSpeed speed = simulate_free(step, cluster, "allreduce");
    return 2 / speed.steps_per_s;
  };
  const double fast = step_s(100e9, 100e9);
  EXPECT_THAT(step_s(1e9, 100e9) - fast, DoubleNear(8 * 4.2e-3, 5e-3));
  EXPECT_THAT(step_s(100e9, 1e9), DoubleNear(fast, 1e-5));
}

// A member receives for 20 ms and then sums for 20 ms, except for what arrives while it still
// scales its own parts.
TEST(SimulateTest, ARingReceivesAndThenSums) {
  SimulatedStep step = two_layers();
  for (StepVariable& use : step.variables) use.rule_bytes = 0;
  const auto step_s = [&](double receive_s_per_byte) {
    SimulatedCluster cluster = hosts(0, 2, 100e9);
    for (SimulatedMachine& machine : cluster.machines) machine.bytes_per_s = 5 * 4.2e6 / 20e-3;
    TransportCosts costs = free_of_cost();
    costs.receive_s_per_byte = receive_s_per_byte;
    const SimulatedSpeed speed =
        simulate({.step = &step, .cluster = cluster, .strategy = {"allreduce"}, .costs = costs});
    return 2 / speed.steps_per_s;
  };
  EXPECT_THAT(step_s(20e-3 / 8.4e6) - step_s(0), AllOf(Gt(10e-3), Lt(20e-3)));
}

// A round trip of a step and its answer passes each end twice at least.
TEST(SimulateTest, ASmallMessageCostsBothEndsAsOverItsKindOfLink) {
  const SimulatedStep step = two_layers();
  const auto step_s = [&](bool share_memory, double tcp_s, double shared_s) {
    SimulatedCluster cluster = one_host(1, 1);
    cluster.share_memory = share_memory;
    TransportCosts costs = free_of_cost();
    costs.message_s = tcp_s;
    costs.shared_message_s = shared_s;
    return 1 / simulate({.step = &step, .cluster = cluster, .strategy = {"async"}, .costs = costs})
                   .steps_per_s;
  };
  for (const bool share_memory : {false, true}) {
    const double free = step_s(share_memory, 0, 0);
    const double charged = share_memory ? step_s(true, 0, 1e-3) : step_s(false, 1e-3, 0);
    EXPECT_THAT(charged - free, AllOf(Gt(3.9e-3), Lt(12e-3))) << share_memory;
    const double of_others = share_memory ? step_s(true, 1e-3, 0) : step_s(false, 0, 1e-3);
    EXPECT_THAT(of_others, DoubleNear(free, 1e-9)) << share_memory;
  }
}

TEST(SimulateTest, ARingTakesTwoPassesOverTheLink) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed speed = simulate_free(step, hosts(0, 4, 100e6), "allreduce");
  const double link = 2.0 * 3 / 4 * (8 << 20) / 100e6;  // seconds per step
  EXPECT_THAT(speed.steps_per_s / 4, Lt(1 / link));
  EXPECT_THAT(speed.steps_per_s / 4, Gt(0.85 / (link + 10e-3)));
}

TEST(SimulateTest, EveryStrategyRunsOnOneHostAndOnSeveral) {
  for (const StrategyKind* const kind : strategies()) {
    const SimulatedStep step = kind->splits_variables() ? with_a_large_table() : two_layers();
    for (const bool several : {false, true}) {
      const int ps = kind->has_ps() ? 2 : 0,
                workers = kind->cluster == ClusterKind::kOneProcess ? 1 : 3;
      const SimulatedSpeed speed =
          simulate({.step = &step,
                    .cluster = several ? hosts(ps, workers, 1e9) : one_host(ps, workers),
                    .strategy = {.name = std::string(kind->name),
                                 .local_steps = 4,
                                 .outer_fragments = ps > 0 ? 2 : 1},
                    .accumulate = several ? 2 : 1});
      EXPECT_THAT(speed.steps_per_s, Gt(30)) << kind->meaning << several;
      EXPECT_THAT(speed.steps_per_s, Lt(1.01 * 100 * workers)) << kind->meaning;
    }
  }
}

// If other workers have made steps meanwhile, the worker reads newer values. The ps had written its
// copy before these steps, so it must read the values once more to renew the copy.
TEST(SimulateTest, AWorkerThatHadToWaitHasItsCopyInSharedMemoryRenewed) {
  SimulatedStep step = two_layers();
  for (StepVariable& use : step.variables) use.reread = true;
  const auto moved = [&](const char* strategy) {
    const SimulatedSpeed speed = simulate_free(step, one_host(1, 2), strategy);
    return speed.use.moved[0] / speed.steps_per_s;
  };
  constexpr double kRead = 8 << 20;
  EXPECT_THAT(moved("ssp") - moved("async"), DoubleNear(kRead, 0.3 * kRead));
}

// Values return while contributions leave, whether or not the step is clipped.
TEST(SimulateTest, AClippedStepUsesBothWaysOfALinkAtOnce) {
  double speeds[2] = {};
  for (const bool clipped : {false, true}) {
    SimulatedStep step = two_layers();
    step.clipped = clipped;
    speeds[clipped] = simulate_free(step, hosts(1, 1, 100e6), "async").steps_per_s;
  }
  EXPECT_THAT(speeds[1], Gt(0.85 * speeds[0]));
}

TEST(SimulateTest, SparseRowsAndClippedStepsAreFollowed) {
  SimulatedStep step = two_layers();
  step.specs[0].sparse = true;
  step.variables[0].most_rows = 64;
  for (const bool clipped : {false, true}) {
    step.clipped = clipped;
    for (const char* name : {"async", "ssp", "sync", "allreduce", "hybrid"}) {
      const int ps = is_without_ps(name) ? 0 : 2;
      for (const auto& cluster : {hosts(ps, 3, 1e9), one_host(ps, 3)}) {
        const SimulatedSpeed speed =
            simulate({.step = &step, .cluster = cluster, .strategy = {name}});
        EXPECT_THAT(speed.steps_per_s, Gt(30)) << name << clipped;
      }
    }
  }
}

/// Local steps on hosts with links of 100 MB/s, where the variables take 84 ms each way.
SimulatedJob local_steps(const SimulatedStep& step, int ps, int between, int fragments) {
  return {.step = &step,
          .cluster = hosts(ps, 2, 100e6),
          .strategy = {.name = "local_sgd", .local_steps = between, .outer_fragments = fragments},
          .costs = free_of_cost(),
          .warm_steps = 2 * between,
          .steps = 2 * between};
}

TEST(SimulateTest, AWorkerThatMakesLocalStepsWaitsOnceForItsRound) {
  const SimulatedStep step = two_layers();
  // The contributions of both workers pass the link of the ps, and after them the values do.
  const SimulatedSpeed speed = simulate(local_steps(step, 1, 20, 1));
  const double bytes = 8 << 20, waits = 2 * 2 * bytes / 100e6;
  EXPECT_THAT(speed.steps_per_s, DoubleNear(2 * 20 / (20 * 10e-3 + waits), 4));
  EXPECT_THAT(speed.use.answer + speed.use.values, Gt(0.5));
}

TEST(SimulateTest, FragmentsTravelWhileLocalStepsAreMade) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed slow = simulate(local_steps(step, 1, 10, 2)),
                       fast = simulate(local_steps(step, 1, 40, 2));
  // The link needs 168 ms in each direction for both workers' bytes of 10 steps, which take 100 ms.
  EXPECT_THAT(slow.steps_per_s, DoubleNear(2 * 10 / (2.0 * (8 << 20) / 100e6), 10));
  EXPECT_THAT(slow.use.received[0], Gt(80e6));
  EXPECT_THAT(fast.steps_per_s, Gt(190));
}

TEST(SimulateTest, LocalStepsWithoutRoundsWaitForNoOther) {
  const SimulatedStep step = two_layers();
  SimulatedJob job = local_steps(step, 1, 20, 1);
  const SimulatedSpeed rounds = simulate(job);
  job.strategy.outer_async = true;
  EXPECT_THAT(simulate(job).steps_per_s, Gt(1.2 * rounds.steps_per_s));
  job.strategy.outer_fragments = 2;
  EXPECT_THAT(simulate(job).steps_per_s, Gt(180));
}

TEST(SimulateTest, LocalStepsOverAnAllReduceWaitForTheRing) {
  const SimulatedStep step = two_layers();
  const SimulatedSpeed speed = simulate(local_steps(step, 0, 20, 1));
  const double ring = 2.0 / 2 * (8 << 20) / 100e6;
  EXPECT_THAT(speed.steps_per_s, Lt(2 * 20 / (20 * 10e-3 + ring)));
  EXPECT_THAT(speed.steps_per_s, Gt(0.85 * 2 * 20 / (20 * 10e-3 + ring)));
}

TEST(SimulateTest, LocalStepsSendDenseDifferencesOfSparseVariables) {
  SimulatedStep step = two_layers();
  step.specs[0].sparse = true;
  step.variables[0].most_rows = 16;
  const SimulatedSpeed sparse = simulate(local_steps(step, 1, 20, 1));
  const SimulatedStep dense = two_layers();
  EXPECT_THAT(sparse.steps_per_s,
              DoubleNear(simulate(local_steps(dense, 1, 20, 1)).steps_per_s, 1));
}

TEST(SimulateTest, HybridMovesTheRowsOfATableAndReducesTheRest) {
  const SimulatedStep step = with_a_large_table();
  const auto with = [&](const char* strategy, int ps) {
    return simulate_free(step, hosts(ps, 4, 100e6), strategy);
  };
  const SimulatedSpeed hybrid = with("hybrid", 1), sync = with("sync", 1),
                       ring = with("allreduce", 0);
  // In all-reduce, each of four members sends 1.5 times the bytes of the dense variable. With one
  // ps, the link of the ps carries more: four contributions.
  EXPECT_THAT(hybrid.steps_per_s, Gt(1.5 * sync.steps_per_s));
  EXPECT_THAT(hybrid.steps_per_s, DoubleNear(ring.steps_per_s, 0.25 * ring.steps_per_s));
  const double rows = 64 * 4096.0 * hybrid.steps_per_s;
  EXPECT_THAT(hybrid.use.received[0], AllOf(Gt(rows), Lt(1.1 * rows)));
}

TEST(SimulateTest, HybridNeedsASparseAndADenseVariable) {
  const SimulatedStep step = two_layers();
  try {
    simulate({.step = &step, .cluster = one_host(1, 2), .strategy = {"hybrid"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("--strategy hybrid needs a sparse variable"));
  }
}

TEST(SimulateTest, TheMessagesOfEveryStrategyAreDriven) {
  using enum MessageType;
  for (const MessageType type :
       {kWhole, kDecided, kSquares, kScale, kGiven, kCommitted, kRoundOpen, kSumsWhole, kCommit,
        kPartialSum, kContributedRows, kInPlace, kCopied}) {
    EXPECT_EQ(simulated_as(type), Simulated::kDriven) << name_of(type);
  }
  // A member sends kWithdraw only when another member is lost; tasks ask for clocks only while they
  // record a timeline.
  for (const MessageType type : {kWithdraw, kAskClock, kClock}) {
    EXPECT_EQ(simulated_as(type), Simulated::kNotInASteadyRun) << name_of(type);
  }
}

TEST(SimulateTest, AnUnknownStrategyIsNamed) {
  const SimulatedStep step = two_layers();
  try {
    simulate({.step = &step, .cluster = one_host(1, 1), .strategy = {"gossip"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("gossip"));
  }
}

}  // namespace
}  // namespace paceline
