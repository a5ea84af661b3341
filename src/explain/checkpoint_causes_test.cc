// Checkpoints that are written slowly.
#include <gtest/gtest.h>

#include "explain/causes.h"

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

const StagedRun kStagedCheckpoints[] = {
    {"checkpoints on a slow disk", Limit::kCheckpoints, "",
     "Each checkpoint takes 6.2 s to write, at 12.1 MB/s: the next one was wanted 4.2 s before it "
     "could be begun. With --out on a faster disk, or a larger --save-every.",
     [](Report& run) {
       run.set("checkpoints", "seconds_each", 6.2);
       run.set("checkpoints", "bytes_per_s", 12.1e6);
       run.set("checkpoints", "late_s", 4.2);
     }},
    {"a last checkpoint on a slow disk", Limit::kCheckpoints, "", "the run waited 9.5 s for them",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       run.set("checkpoints", "waited_s", 9.5);
     }},
};

TEST(CheckpointCauses, AreToldWithTheirTask) { expect_told(kStagedCheckpoints); }

TEST(CheckpointCauses, AreNotSeenInThePauseOfATask) {
  Report run = sample_report();
  run.set("checkpoints", "late_s", 4.2);
  run.tasks[1].use.pressure.stops = {.seconds = 3.9, .longest = 3.9};
  EXPECT_TRUE(slow_checkpoints(RunFacts(run)).empty());
}

}  // namespace
}  // namespace paceline
