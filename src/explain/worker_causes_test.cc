// Causes in the computing of workers.
#include <gtest/gtest.h>

#include "explain/explain.h"
#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

const StagedRun kStagedWorkers[] = {
    {"a slow device", Limit::kStraggler, "worker:1",
     "worker:1's device is slow: the kernels of a step take 176.2 ms, and those of others 88.",
     [](Report& run) { slow_down(run.tasks[1], "compute", 0.9); }},
    {"a slow device in rounds", Limit::kStraggler, "worker:0", "worker:0's device is slow",
     [](Report& run) {
       run.strategy = "sync";
       slow_down(run.tasks[0], "compute", 1);
       slow_down(run.tasks[1], "wait", 1);
       // The device computes while its worker waits.
       run.tasks[1].share[1].second -= 0.4;
       run.tasks[1].share[5].second += 0.4;
     }},
    {"a slow device in rounds that the prediction knows", Limit::kStraggler, "worker:1",
     "worker:1's device is slow: it computes",
     [](Report& run) {
       run.strategy = "sync";
       slow_down(run.tasks[0], "wait", 1);
       slow_down(run.tasks[1], "compute", 1);
       run.expected->steps_per_s = 10.2;
       run.expected->limit = "worker:1, whose steps take 2 times as long as those of the others";
       run.expected->other_ways = {{"--ps 1 --workers 2", 15}};
     }},
    {"a small batch", Limit::kSmallBatch, "",
     "The batch is small, 4 images: 75% of a step is updates and transfers, which take as long "
     "whatever the batch. --batch 32: 40 → 116.4 images/s.",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       run.tasks[0].examples_per_s = 40;
       run.set("bound", "rules_share", 0.75);
     }},
    {"a small batch, whose kernels take twice as long as their FLOPs", Limit::kSmallBatch, "",
     "--batch 32: 40 → 152.8 images/s.",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       run.tasks[0].examples_per_s = 40;
       run.set("bound", "rules_share", 0.75);
       run.set("bound", "steps_per_s", 20);
     }},
    {"launches of many small kernels", Limit::kLaunches, "worker:0",
     "A step launches 15,000 kernels, which takes as long whatever the batch: at some 5 µs each, "
     "75% of the time. --batch 512: 640 → 1,862 images/s.",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       run.tasks[0].launches = 15'000;
     }},
    {"launches that copies leave no more time to", Limit::kLaunches, "",
     "A step launches 20,000 kernels on each device, which takes as long whatever the batch: at "
     "some 5 µs each, 90% of the time.",
     [](Report& run) {
       for (int i : {0, 1}) {
         run.tasks[std::size_t(i)].launches = 20'000;
         run.tasks[std::size_t(i)].copies_ms = 10;
       }
     }},
    {"launches in a run that counts no examples", Limit::kLaunches, "worker:0",
     "With fewer kernels that each compute more, up to: 10 → 40 steps/s.",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       run.tasks[0].unit = "steps";
       run.tasks[0].launches = 15'000;
     }},
};

TEST(WorkerCauses, AreToldWithTheirTask) { expect_told(kStagedWorkers); }

TEST(WorkerCauses, LaunchesThatTakeLessThanHalfOfTheTimeAreNone) {
  Report run = sample_report();
  for (int i : {0, 1}) run.tasks[std::size_t(i)].launches = 9'900;
  for (const Finding& found : findings_of(run)) EXPECT_NE(found.cause, Limit::kLaunches);
}

}  // namespace
}  // namespace paceline
