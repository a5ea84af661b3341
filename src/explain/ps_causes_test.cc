// Causes in the parameter servers.
#include <gtest/gtest.h>

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

void heat_second_ps(Report& run, double busy_cores) {
  for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
  run.tasks.push_back(ps_report(1));
  for (int i : {2, 3}) {
    run.tasks[std::size_t(i)].kept = {.bytes = 50e6, .largest = "embedding", .largest_bytes = 50e6};
  }
  for (TaskReport& task : run.tasks) task.use.pressure.machine_cores = busy_cores;
  run.tasks[3].share = {{"apply", 0.8}, {"queue", 0.1}, {"idle", 0.1}};
}

void lock_ps(Report& run, double busy_cores) {
  for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "push", 0.5);
  for (TaskReport& task : run.tasks) task.use.pressure.machine_cores = busy_cores;
  run.tasks[2].share = {{"apply", 0.2}, {"queue", 0.75}, {"idle", 0.05}};
}

const StagedRun kStagedPs[] = {
    {"a ps that applies all the time", Limit::kRules, "ps:0",
     "ps:0 is busy 95% of the time, 45.2 ms for each step of a worker. --ps 2 --workers 2: 13.33 "
     "→ 18.67 steps/s.",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.tasks[2].share = {{"apply", 0.9}, {"queue", 0.05}, {"idle", 0.05}};
       run.expected->steps_per_s = 15;
       run.expected->other_ways = {{"--ps 2 --workers 2", 21}};
     }},
    {"a ps whose rule takes longer than was predicted", Limit::kRules, "ps:0",
     "ps:0 is busy 95% of the time, 45.2 ms for each step of a worker. Another ps: 6.667 → 11.11",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 2);
       run.tasks[2].share = {{"apply", 0.9}, {"queue", 0.05}, {"idle", 0.05}};
       for (TaskReport& task : run.tasks) task.use.pressure.machine_cores = 1.2;
       run.expected->other_ways = {{"--ps 2 --workers 2", 20.5}};
     }},
    {"one ps has most of the work", Limit::kHotShard, "ps:1",
     "it has the rows that most steps touch", [](Report& run) { heat_second_ps(run, 1); }},
    {"one ps has most of the work, and a core is free for some of it only", Limit::kHotShard,
     "ps:1", "names what each has): 13.33 → 16.67 steps/s.",
     [](Report& run) { heat_second_ps(run, 1.6); }},
    {"one ps has most of the work, which keeps all cores busy", Limit::kNothing, "",
     "Nothing holds it back", [](Report& run) { heat_second_ps(run, 1.95); }},
    {"one ps keeps a variable that is not split", Limit::kUnsplit, "ps:0",
     "ps:0 is busy 90% of the time, and other parameter servers 12%: it keeps all of big/w, 66 of "
     "its 67.1 MB. With that variable split",
     [](Report& run) {
       for (int i : {0, 1}) slow_down(run.tasks[std::size_t(i)], "pull", 0.5);
       run.tasks.push_back(ps_report(1));
       run.tasks[2].share = {{"apply", 0.8}, {"queue", 0.1}, {"idle", 0.1}};
       run.tasks[2].kept = {.bytes = 67.1e6, .largest = "big/w", .largest_bytes = 66e6};
       run.tasks[3].kept = {.bytes = 4e6, .largest = "out/w", .largest_bytes = 3e6};
       for (TaskReport& task : run.tasks) task.use.pressure.machine_cores = 1;
     }},
    {"all update one variable", Limit::kLock, "ps:0",
     "Contributions queue 75% of the time of ps:0, which applies 20%: workers update the same "
     "variables at the same moment. With another ps, or fewer workers: 13.33 → 21.51 steps/s.",
     [](Report& run) { lock_ps(run, 1.2); }},
    {"all update one variable, by passes that keep all cores busy", Limit::kNothing, "",
     "Nothing holds it back", [](Report& run) { lock_ps(run, 1.95); }},
};

TEST(PsCauses, AreToldWithTheirTask) { expect_told(kStagedPs); }

}  // namespace
}  // namespace paceline
