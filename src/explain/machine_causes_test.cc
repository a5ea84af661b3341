// Causes that come from the machine.
#include <gtest/gtest.h>

#include "explain/explain.h"
#include "explain/run_facts.h"

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

const StagedRun kStagedMachines[] = {
    {"a worker was stopped", Limit::kStopped, "worker:1",
     "worker:1 stood still for 2.0 s of 20: a signal or a debugger stopped it, or its host was "
     "frozen. Without that: 19.05 → 20",
     [](Report& run) {
       slow_down(run.tasks[1], "compute", 0.11);
       run.tasks[0].steps_per_s = 10.04;
       run.tasks[1].use.pressure.stops = {.seconds = 2, .longest = 2};
     }},
    {"a ps was stopped", Limit::kStopped, "ps:0", "ps:0 stood still for 3.0 s",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.17);
       run.tasks[2].use.pressure.stops = {.seconds = 3, .longest = 3};
     }},
    {"a worker was stopped in rounds, and another one computes while it waits", Limit::kStopped,
     "worker:1", "worker:1 stood still for 2.0 s of 20",
     [](Report& run) {
       run.strategy = "sync";
       slow_down(run.tasks[0], "compute", 0.3);
       slow_down(run.tasks[1], "wait", 1);
       run.tasks[1].use.pressure.stops = {.seconds = 2, .longest = 2};
       run.expected->steps_per_s = 15;
     }},
    {"a worker was stopped in rounds, which went on without it", Limit::kStopped, "worker:1",
     "or its host was frozen. Without that: 11.25 → 21",
     [](Report& run) {
       run.strategy = "sync";
       for (int i : {0, 1}) run.tasks[std::size_t(i)].steps_per_s = 7.5;
       slow_down(run.tasks[1], "wait", 1);
       run.tasks[1].use.pressure.stops = {.seconds = 14, .longest = 14};
     }},
    {"another process on the core of one worker", Limit::kOtherProcesses, "worker:1",
     "worker:1 is slow: it waited 40% of its time for a free core, and other processes kept 0.6 "
     "cores busy. Without that:",
     [](Report& run) {
       slow_down(run.tasks[1], "compute", 0.66);
       run.tasks[1].use.pressure.queued = run.tasks[1].use.pressure.waited = 0.4;
       run.tasks[1].use.cores = 0.5;
       run.tasks[2].use.cores = 0.0;
     }},
    {"the same, while the ps makes room for that worker", Limit::kOtherProcesses, "worker:1",
     "worker:1 is slow: it waited 40% of its time for a free core",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.tasks[1].use.pressure.queued = run.tasks[1].use.pressure.waited = 0.4;
       run.tasks[1].use.cores = 0.5;
       run.tasks[2].use.pressure.queued = 0.5;
       run.tasks[2].use.cores = 0.3;
     }},
    {"the same, while the ps waits for a core longer than that worker", Limit::kOtherProcesses,
     "worker:1",
     "worker:1 is slow: it waited 27% of its time for a free core, and other processes kept 0.3 "
     "cores busy. Without that: 13 → 16",
     [](Report& run) {
       slow_down(run.tasks[0], "pull", 0.25);
       slow_down(run.tasks[1], "pull", 1);
       run.tasks[1].use.pressure.queued = 0.52;
       run.tasks[1].use.pressure.waited = 0.27;
       run.tasks[1].use.cores = 0.47;
       run.tasks[2].use.pressure.queued = 0.88;
       run.tasks[2].use.cores = 0.3;
     }},
    {"another process on the core of one worker, where tasks of the run want all cores",
     Limit::kOtherProcesses, "worker:1",
     "other processes kept 0.5 cores busy. Without that: 13.26 → 17.68",
     [](Report& run) {
       slow_down(run.tasks[0], "pull", 0.25);
       slow_down(run.tasks[1], "pull", 0.9);
       run.tasks[0].use.pressure.waited = run.tasks[1].use.pressure.waited = 0.23;
       constexpr double kQueued[] = {0.4, 0.5, 0.8}, kUsed[] = {0.6, 0.45, 0.45};
       for (std::size_t i : {0, 1, 2}) {
         run.tasks[i].use.pressure.queued = kQueued[i];
         run.tasks[i].use.cores = kUsed[i];
       }
     }},
    {"other processes on all cores", Limit::kOtherProcesses, "",
     "Other processes kept 1.2 of 2 cores",
     [](Report& run) {
       for (int i : {0, 1}) {
         Pressure& pressure = run.tasks[std::size_t(i)].use.pressure;
         slow_down(run.tasks[std::size_t(i)], "compute", 0.9);
         pressure.queued = pressure.waited = 0.5;
         run.tasks[std::size_t(i)].use.cores = 0.4;
       }
       run.tasks[2].use.cores = 0.0;
     }},
    {"too little memory", Limit::kShortMemory, "worker:0",
     "worker:0 lacks memory: 400 of its pages",
     [](Report& run) {
       run.tasks[0].use.pressure.major_faults = 400;
       run.tasks[0].use.pressure.memory_wait = 0.4;
     }},
    {"too little memory, whose pages are waited for as for a disk", Limit::kShortMemory, "worker:0",
     "worker:0 lacks memory: 4000 of its pages a second were read from a disk. With enough memory: "
     "15 → 20.",
     [](Report& run) {
       slow_down(run.tasks[0], "compute", 1);
       run.tasks[0].use.disk_read = 6e7;
       run.tasks[0].use.pressure.major_faults = 4000;
       run.tasks[0].use.pressure.memory_wait = 0.04;
       run.tasks[0].use.pressure.disk_wait = 0.4;
     }},
};

TEST(MachineCauses, AreToldWithTheirTask) { expect_told(kStagedMachines); }

// The pause of one task also shows in the times of other tasks and of checkpoints.
TEST(MachineCauses, OfATaskThatStoodStillAreToldBeforeAllOthers) {
  Report run = sample_report();
  slow_down(run.tasks[0], "input", 0.8);
  run.set("checkpoints", "late_s", 9);
  run.tasks[1].use.pressure.stops = {.seconds = 2, .longest = 2};
  run.expected->high = run.expected->steps_per_s = 5;  // it is as fast as was expected
  EXPECT_EQ(explain(run).cause, Limit::kStopped) << explanation(run);
  run.tasks[1].use.pressure.stops = {.seconds = 0.3, .longest = 0.3};
  EXPECT_NE(explain(run).cause, Limit::kStopped) << explanation(run);
}

TEST(MachineCauses, OfOtherProcessesAreNotTasksOfTheRunThatTellNothing) {
  Report run = sample_report();
  for (TaskReport& task : run.tasks) {
    task.use.cores = 0.3;
    task.use.pressure.machine_cores = 1.9;
  }
  EXPECT_NEAR(RunFacts(run).cores_of_others(), 1.0, 1e-9);
  Report silent = run;
  silent.tasks[1].use = {};
  EXPECT_EQ(RunFacts(silent).cores_of_others(), 0);
  for (const char* flag : {"--workers", "--ps"}) {
    Report missing = run;
    missing.flags = {{flag, "3"}};
    EXPECT_EQ(RunFacts(missing).cores_of_others(), 0) << "a task was killed";
  }
  Report expected = run;
  expected.expected->workers = 3;
  EXPECT_EQ(RunFacts(expected).cores_of_others(), 0);
  Report evaluated = run;
  evaluated.flags = {{"--evaluator", ""}};
  EXPECT_EQ(RunFacts(evaluated).cores_of_others(), 0);
}

}  // namespace
}  // namespace paceline
