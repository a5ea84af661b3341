// Tests explanations of a run as a whole; the tests of single causes stand beside the causes.
#include "explain/explain.h"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const StagedRun kStagedOtherwise[] = {
    {"a way that waits", Limit::kWay, "", "--ps 1 --workers 2 --strategy async: 10 → 18",
     [](Report& run) {
       run.strategy = "sync";
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "wait", 1);
       run.expected->steps_per_s = 10;
       run.expected->other_ways = {{"--ps 1 --workers 2 --strategy async", 18}};
     }},
    {"slow, and nobody knows why", Limit::kNotKnown, "", "I cannot tell why",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 2);
     }},
};

TEST(Explain, TellsOtherWaysAndWhatIsNotKnown) { expect_told(kStagedOtherwise); }

TEST(Explain, IsCalmAboutHealthyRuns) {
  const std::vector<std::function<void(Report&)>> healthy = {
      [](Report&) {},
      // A cluster in which nobody waits much.
      [](Report& run) { run.strategy = "sync"; },
      // The run's own tasks, and no other process, keep each other's threads waiting for cores.
      [](Report& run) {
        for (TaskReport& task : run.tasks) {
          task.use.pressure.queued = task.use.pressure.waited = 0.3;
        }
        run.tasks[0].use.cores = run.tasks[1].use.cores = 0.95;
      },
      // Other processes keep threads waiting, but these threads delay nobody.
      [](Report& run) {
        for (TaskReport& task : run.tasks) {
          task.use.pressure.queued = 0.6;
          task.use.cores = 0.1;
        }
      },
      // In rounds, the worker with the slowest device computes while the others wait.
      [](Report& run) {
        run.strategy = "sync";
        slow_down(run.tasks[1], "wait", 1);
        for (int i : {0, 1}) run.tasks[std::size_t(i)].steps_per_s = 9;
      },
      // The operating system tells nothing, as in a report of an earlier version.
      [](Report& run) {
        for (TaskReport& task : run.tasks) task.use = {};
        run.expected.reset();
        run.cores.reset();
      },
      // A little of everything.
      [](Report& run) {
        slow_down(run.tasks[1], "compute", 0.1);
        slow_down(run.tasks[0], "input", 0.04);
        run.tasks[1].use.pressure.stops = {.seconds = 0.3, .longest = 0.3};
        run.tasks[0].use.pressure.machine_cores = 1.95;
        run.tasks[2].share[0].second = 0.7;
      },
      // Copies take little time, and as much for each worker; checkpoints are hardly late.
      [](Report& run) {
        for (int i : {0, 1}) run.tasks[std::size_t(i)].copies_ms = 9;
        run.set("checkpoints", "late_s", 0.9);
        run.set("checkpoints", "waited_s", 1.9);
      },
      // Threads that run only briefly wait for other such threads, and the run is as fast as
      // expected.
      [](Report& run) {
        run.tasks[2].use.pressure.queued = 0.7;
        run.tasks[2].use.cores = 0.1;
        for (int i : {0, 1}) {
          slow_down(run.tasks[std::size_t(i)], "pull", 0.3);
          run.tasks[std::size_t(i)].use.cores = 0.1;
        }
        run.expected->steps_per_s = 15.5;
        run.expected->low = 14;
        run.expected->high = 15.6;
      },
      // Another way is hardly faster.
      [](Report& run) {
        run.expected->other_ways = {{"--ps 2 --workers 2", 21}};
      },
  };
  for (std::size_t i = 0; i < healthy.size(); ++i) {
    SCOPED_TRACE(i);
    Report run = sample_report();
    healthy[i](run);
    EXPECT_FALSE(explain(run).is_alarm()) << explanation(run);
    EXPECT_THAT(explanation(run), StartsWith("Nothing"));
  }
}

TEST(Explain, IsNotMisledByNumbersThatAreNone) {
  const std::vector<std::function<void(Report&)>> odd = {
      // The machine does not tell how much its links carry.
      [](Report& run) {
        for (int i : {0, 1}) {
          TaskReport& task = run.tasks[std::size_t(i)];
          slow_down(task, "pull", 1);
          task.links = {tcp_link(task, 1e7, 1e7)};
          task.links[0].sent = task.links[0].received = std::nullopt;
        }
        run.expected.reset();
      },
      [](Report& run) { run.tasks[1].steps_per_s = 0; },
  };
  for (std::size_t i = 0; i < odd.size(); ++i) {
    SCOPED_TRACE(i);
    Report run = sample_report();
    odd[i](run);
    EXPECT_FALSE(explain(run).is_alarm()) << explanation(run);
    EXPECT_THAT(explanation(run), Not(AnyOf(HasSubstr("nan"), HasSubstr("inf"))));
  }
}

TEST(Explain, GivesATerminalNoCommands) {
  const Finding finding{.sentence = "ps:0\x1b]0;title\x07 is busy.", .advice = "Another ps"};
  EXPECT_EQ(finding.text(10), "ps:0?]0;title? is busy. Another ps.");
}

TEST(Explain, SaysHowNearARunCameToItsBound) {
  Report run = sample_report({worker_report(0)});
  run.set("bound", "gflops_per_s", 211.6);
  run.set("bound", "gbytes_per_s", 58.06);
  run.set("bound", "steps_per_s", 10.3);
  EXPECT_EQ(explanation(run),
            "Nothing to gain: 0.97 of what 2 cores can do (212 GFLOP/s and 58.1 GB/s would allow "
            "10.3 steps/s).");
  run.set("bound", "steps_per_s", 20);
  EXPECT_EQ(explanation(run),
            "Nothing holds it back: 90% of the time went to kernels, and it made 0.50 of what 2 "
            "cores can do (212 GFLOP/s and 58.1 GB/s would allow 20 steps/s).");
}

TEST(Explain, NamesTheCoresThatTheTasksKeepBusyWhileWorkersWait) {
  Report run = sample_report();
  for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 1);
  for (TaskReport& task : run.tasks) {
    task.use.cores = 0.55;
    task.use.pressure.machine_cores = 1.7;
  }
  run.expected.reset();
  EXPECT_EQ(explanation(run),
            "Nothing holds it back but the 2 cores, which its tasks keep 82% busy: 52% of the time "
            "went to waiting for values from the ps.");
  EXPECT_FALSE(explain(run).is_alarm());
  // How many cores the other machines have is not known.
  run.flags = {{"--cluster", "ps=a:1;worker=b:1,c:1"}};
  EXPECT_THAT(explanation(run), StartsWith("Nothing holds it back: "));
  run.flags.clear();
  for (TaskReport& task : run.tasks) task.use.cores = 0.3;
  EXPECT_THAT(explanation(run), StartsWith("Nothing holds it back: "));
}

TEST(Explain, SaysWhatWasForeseenWhereWorkersWaitAsLongAsThat) {
  Report run = sample_report();
  run.strategy = "sync";
  for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "wait", 1);
  for (TaskReport& task : run.tasks) task.use.cores = 0.3;
  run.expected = {.steps_per_s = 10, .low = 9.5, .high = 10.5, .limit = "ps:0 applies rules"};
  EXPECT_EQ(explanation(run),
            "Nothing holds it back beyond what was predicted: ps:0 applies rules.");
  EXPECT_FALSE(explain(run).is_alarm());
  run.expected->low = 10.1;
  EXPECT_THAT(explanation(run), StartsWith("Nothing holds it back: 50% of the time went to"));
}

TEST(Explain, NamesAWorkerThatMadeTooFewStepsToBeTimed) {
  Report run = sample_report();
  run.tasks[1].steps = 4;
  run.tasks[1].steps_per_s.reset();
  run.tasks[1].share.clear();
  EXPECT_EQ(explanation(run),
            "worker:1 made 4 steps while worker:0 made 210: too few to be timed, so that I cannot "
            "tell why.");
  EXPECT_EQ(explain(run).task, "worker:1");
  run.error = "worker:1 failed first";
  EXPECT_FALSE(explain(run).is_alarm()) << explanation(run);
  run.error.clear();
  run.tasks[1].use.seconds = 1;  // it joined at the end
  EXPECT_FALSE(explain(run).is_alarm()) << explanation(run);
}

TEST(Explain, SaysThatARunWasTooShort) {
  Report run = sample_report({worker_report(0)});
  slow_down(run.tasks[0], "input", 1.5);
  run.tasks[0].seconds = 0.1;
  EXPECT_EQ(explanation(run),
            "Too short to tell what holds it back: 60% of the time went to "
            "making batches.");
  EXPECT_FALSE(explain(run).is_alarm());
}

TEST(Explain, SaysNothingWithoutATimedStep) {
  Report run = sample_report();
  for (TaskReport& task : run.tasks) task.steps_per_s.reset();
  EXPECT_EQ(explanation(run), "");
  EXPECT_EQ(explanation({}), "");
  EXPECT_FALSE(explain({}).is_alarm());
}

}  // namespace
}  // namespace paceline
