// Causes in the computing of workers.
#include <gtest/gtest.h>

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
};

TEST(WorkerCauses, AreToldWithTheirTask) { expect_told(kStagedWorkers); }

}  // namespace
}  // namespace paceline
