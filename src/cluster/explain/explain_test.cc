// Runs with one cause each, as their reports would show it, and what is said of them.
#include "cluster/explain/explain.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TaskReport worker(int index) {
  TaskReport task;
  task.task = "worker:" + std::to_string(index);
  task.steps = 210;
  task.seconds = 20;
  task.steps_per_s = 10;
  task.examples_per_s = 640;
  task.unit = "images";
  task.hidden_ms = 0;
  task.share = {{"input", 0.01}, {"compute", 0.9}, {"pull", 0.04}, {"push", 0.03},
                {"apply", 0},    {"wait", 0},      {"other", 0.02}};
  task.use.cores = 0.9;
  task.use.seconds = 20;
  task.use.pressure = {
      .queued = 0.02, .waited = 0.02, .machine_cores = 2.0, .major_faults = 0, .memory_wait = 0};
  task.links.emplace_back();
  task.links[0].to = "ps:0";
  task.links[0].kind = "shm";
  return task;
}

TaskReport ps(int index) {
  TaskReport task;
  task.task = "ps:" + std::to_string(index);
  task.steps = 420;
  task.seconds = 20;
  task.share = {{"apply", 0.1}, {"queue", 0.02}, {"idle", 0.88}};
  task.use.cores = 0.1;
  task.use.seconds = 20;
  task.use.pressure = {.queued = 0.02, .machine_cores = 2.0};
  return task;
}

/// A healthy run of two workers and a ps, asynchronous.
Report run_of(std::vector<TaskReport> tasks = {worker(0), worker(1), ps(0)}) {
  Report run;
  run.model = "cifar10";
  run.strategy = "async";
  run.cores = 2;
  run.tasks = std::move(tasks);
  run.expected = {.steps_per_s = 20, .low = 19, .high = 21, .limit = "the devices"};
  return run;
}

/// Gives a worker another pace, with the shares that follow when only `activity` took longer.
void slow_down(TaskReport& task, const std::string& activity, double more) {
  for (auto& [name, part] : task.share) part = (part + (name == activity ? more : 0)) / (1 + more);
  *task.steps_per_s /= 1 + more;
  *task.examples_per_s /= 1 + more;
}

InputReport input(const std::string& slow) {
  InputReport made{.stages = {{.name = "read", .records = 12000, .seconds = 2},
                              {.name = "decode", .records = 12000, .seconds = 2},
                              {.name = "distort", .records = 12000, .seconds = 2}},
                   .records = 12000,
                   .batches = 200,
                   .threads = 1,
                   .most_threads = 1,
                   .seconds = 20,
                   .waited = 12};
  for (StageReport& stage : made.stages) {
    if (stage.name == slow) stage.seconds = 36;
  }
  return made;
}

void make_input_slow(TaskReport& task, const std::string& stage) {
  slow_down(task, "input", 1.5);
  task.input = input(stage);
}

void use_network(Report& run, double sent, double received) {
  for (TaskReport& task : run.tasks) {
    if (task.links.empty()) continue;
    task.links = {{.to = "ps:0",
                   .kind = "tcp",
                   .round_trip_us = 100,
                   .step_sent = sent / *task.steps_per_s,
                   .step_received = received / *task.steps_per_s,
                   .sent = sent,
                   .received = received,
                   .most = 118.9e6}};
  }
}

struct Staged {
  std::string name;
  Cause cause;
  std::string task, words;
  std::function<void(Report&)> stage;
};

std::vector<Staged> staged_runs() {
  return {
      {"a worker was stopped", Cause::kStopped, "worker:1",
       "worker:1 stood still for 2.0 s of 20: a signal or a debugger stopped it, or its host was "
       "frozen. Without that: 19.05 → 20",
       [](Report& run) {
         slow_down(run.tasks[1], "compute", 0.11);
         run.tasks[0].steps_per_s = 10.04;
         run.tasks[1].use.pressure.stops = {.seconds = 2, .longest = 2};
       }},
      {"a ps was stopped", Cause::kStopped, "ps:0", "ps:0 stood still for 3.0 s",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.17);
         run.tasks[2].use.pressure.stops = {.seconds = 3, .longest = 3};
       }},
      {"another process on the core of one worker", Cause::kOthers, "worker:1",
       "worker:1 is slow: it waited 40% of its time for a free core, and other processes kept 0.6 "
       "cores busy. Without that:",
       [](Report& run) {
         slow_down(run.tasks[1], "compute", 0.66);
         run.tasks[1].use.pressure.queued = run.tasks[1].use.pressure.waited = 0.4;
         run.tasks[1].use.cores = 0.5;
         run.tasks[2].use.cores = 0.0;
       }},
      {"other processes on all cores", Cause::kOthers, "", "Other processes kept 1.2 of 2 cores",
       [](Report& run) {
         for (int i : {0, 1}) {
           Pressure& pressure = run.tasks[std::size_t(i)].use.pressure;
           pressure.queued = pressure.waited = 0.5;
           run.tasks[std::size_t(i)].use.cores = 0.4;
         }
         run.tasks[2].use.cores = 0.0;
       }},
      {"too little memory", Cause::kMemory, "worker:0", "worker:0 lacks memory: 400 of its pages",
       [](Report& run) {
         run.tasks[0].use.pressure.major_faults = 400;
         run.tasks[0].use.pressure.memory_wait = 0.4;
       }},
      {"a slow disk", Cause::kDisk, "worker:0",
       "The input of worker:0 is the limit, at read: with 1 thread it could make 300 images/s, and "
       "the rest of the step could take 646 images/s. With files on a faster disk",
       [](Report& run) {
         run.tasks = {worker(0)};
         make_input_slow(run.tasks[0], "read");
       }},
      {"a slow stage", Cause::kInputStage, "worker:0", "at decode",
       [](Report& run) {
         run.tasks = {worker(0)};
         make_input_slow(run.tasks[0], "decode");
       }},
      {"a slow stage, and cores for it", Cause::kInputStage, "worker:0",
       "--input-threads 4: 4 → 10.1 steps/s.",
       [](Report& run) {
         run.cores = 4;
         run.tasks = {worker(0)};
         make_input_slow(run.tasks[0], "distort");
       }},
      {"bad records", Cause::kBadRecords, "worker:1", "25% of the records were bad",
       [](Report& run) {
         make_input_slow(run.tasks[1], "decode");
         run.tasks[1].input->bad = 4000;
       }},
      {"the input lacks cores", Cause::kInputCores, "worker:0", "its threads lacked cores",
       [](Report& run) {
         make_input_slow(run.tasks[0], "");
         run.tasks[0].input->stages[0].seconds = 0.5;
       }},
      {"slow copies of batches", Cause::kInputCopy, "worker:0", "went to copying them",
       [](Report& run) {
         make_input_slow(run.tasks[0], "");
         run.tasks[0].input->waited = 0.5;
       }},
      {"batches without a pipeline", Cause::kInputStage, "worker:0",
       "Making batches takes 60% of the time of worker:0.",
       [](Report& run) { slow_down(run.tasks[0], "input", 1.5); }},
      {"a full link", Cause::kLink, "ps:0",
       "ps:0's link carries 116 MB/s of the 119 that it can, and the workers wait 38% of their "
       "time "
       "for it. --ps 2 --workers 2: 13.33 → 20 steps/s.",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
         run.expected->steps_per_s = 13.4;
         run.expected->other_ways = {{"", 9}, {"--ps 2 --workers 2", 20.1}};
         use_network(run, 50e6, 58e6);
       }},
      {"a throttled link", Cause::kTaskLink, "worker:1",
       "worker:1's link is slow: it carries 8.9 MB/s while it is waited for, and those of others "
       "85.7. With a link like that: 15 → ",
       [](Report& run) {
         slow_down(run.tasks[1], "pull", 1);
         use_network(run, 1e6, 6e6);
         run.tasks[1].links[0].received = 4.75e6;
       }},
      {"a throttled link in rounds", Cause::kTaskLink, "worker:1", "worker:1's link is slow",
       [](Report& run) {
         run.strategy = "sync";
         // As measured: the slow transfer goes on while its worker waits for the round, too.
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "wait", 1);
         run.tasks[0].hidden_ms = 8;
         run.tasks[1].use.pressure.waited = 0.1;
         run.tasks[1].use.pressure.queued = 0.9;
         run.tasks[1].use.cores = 0.1;
         run.tasks[1].hidden_ms = 95;
         use_network(run, 6e6, 1e6);
       }},
      {"a ps that applies all the time", Cause::kPsBusy, "ps:0",
       "ps:0 is busy 95% of the time, 45.2 ms for each step of a worker. --ps 2 --workers 2: 13.33 "
       "→ 18.67 steps/s.",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
         run.tasks[2].share = {{"apply", 0.9}, {"queue", 0.05}, {"idle", 0.05}};
         run.expected->steps_per_s = 15;
         run.expected->other_ways = {{"--ps 2 --workers 2", 21}};
       }},
      {"one ps has most of the work", Cause::kHotShard, "ps:1", "ps:1 is busy 90% of the time",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
         run.tasks.push_back(ps(1));
         run.tasks[3].share = {{"apply", 0.8}, {"queue", 0.1}, {"idle", 0.1}};
       }},
      {"all update one variable", Cause::kLock, "ps:0", "Contributions queue 75% of the time",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "push", 0.5);
         run.tasks[2].share = {{"apply", 0.2}, {"queue", 0.75}, {"idle", 0.05}};
       }},
      {"a slow device", Cause::kSlowDevice, "worker:1",
       "worker:1's device is slow: the kernels of a step take 176.2 ms, and those of others 88.",
       [](Report& run) { slow_down(run.tasks[1], "compute", 0.9); }},
      {"a slow device in rounds", Cause::kSlowDevice, "worker:0", "worker:0's device is slow",
       [](Report& run) {
         run.strategy = "sync";
         slow_down(run.tasks[0], "compute", 1);
         slow_down(run.tasks[1], "wait", 1);
         // The device computes while its worker waits.
         run.tasks[1].share[1].second -= 0.4;
         run.tasks[1].share[5].second += 0.4;
       }},
      {"a small batch", Cause::kSmallBatch, "",
       "The batch is small, 4 images: 75% of a step is updates and transfers, which take as long "
       "whatever the batch. --batch 32: 40 → 116.4 images/s.",
       [](Report& run) {
         run.tasks = {worker(0)};
         run.tasks[0].examples_per_s = 40;
         run.set("bound", "rules_share", 0.75);
       }},
      {"a way that waits", Cause::kWay, "", "--ps 1 --workers 2 --strategy async: 10 → 18",
       [](Report& run) {
         run.strategy = "sync";
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "wait", 1);
         run.expected->steps_per_s = 10;
         run.expected->other_ways = {{"--ps 1 --workers 2 --strategy async", 18}};
       }},
      {"slow, and nobody knows why", Cause::kNotKnown, "", "I cannot tell why",
       [](Report& run) {
         for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 2);
       }},
  };
}

TEST(Explain, TellsEachCauseAndItsTask) {
  for (const Staged& staged : staged_runs()) {
    SCOPED_TRACE(staged.name);
    Report run = run_of();
    staged.stage(run);
    const Finding finding = explain(run);
    EXPECT_EQ(name_of(finding.cause), name_of(staged.cause)) << explanation(run);
    EXPECT_EQ(finding.task, staged.task) << explanation(run);
    EXPECT_THAT(explanation(run), HasSubstr(staged.words));
    EXPECT_TRUE(finding.is_alarm());
  }
}

TEST(Explain, IsCalmAboutHealthyRuns) {
  const std::vector<std::function<void(Report&)>> healthy = {
      [](Report&) {},
      // A cluster in which nobody waits much.
      [](Report& run) { run.strategy = "sync"; },
      // Tasks of the run that wait for each other's cores, and nobody else's.
      [](Report& run) {
        for (TaskReport& task : run.tasks) {
          task.use.pressure.queued = task.use.pressure.waited = 0.3;
        }
        run.tasks[0].use.cores = run.tasks[1].use.cores = 0.95;
      },
      // Other processes keep threads waiting that hold up nobody.
      [](Report& run) {
        for (TaskReport& task : run.tasks) {
          task.use.pressure.queued = 0.6;
          task.use.cores = 0.1;
        }
      },
      // A machine whose system tells nothing, and a report of an earlier version.
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
      // Another way is no faster by much.
      [](Report& run) {
        run.expected->other_ways = {{"--ps 2 --workers 2", 21}};
      },
  };
  for (std::size_t i = 0; i < healthy.size(); ++i) {
    SCOPED_TRACE(i);
    Report run = run_of();
    healthy[i](run);
    EXPECT_FALSE(explain(run).is_alarm()) << explanation(run);
    EXPECT_THAT(explanation(run), StartsWith("Nothing"));
  }
}

TEST(Explain, SaysHowNearARunCameToItsBound) {
  Report run = run_of({worker(0)});
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

TEST(Explain, SaysThatARunWasTooShort) {
  Report run = run_of({worker(0)});
  make_input_slow(run.tasks[0], "read");
  run.tasks[0].seconds = 0.1;
  EXPECT_EQ(explanation(run),
            "Too short to tell what holds it back: 60% of the time went to "
            "making batches.");
  EXPECT_FALSE(explain(run).is_alarm());
}

TEST(Explain, SaysNothingWithoutATimedStep) {
  Report run = run_of();
  for (TaskReport& task : run.tasks) task.steps_per_s.reset();
  EXPECT_EQ(explanation(run), "");
  EXPECT_EQ(explanation({}), "");
  EXPECT_FALSE(explain({}).is_alarm());
}

}  // namespace
}  // namespace paceline
