// Causes in the input.
#include <gtest/gtest.h>

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

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

const StagedRun kStagedInput[] = {
    {"a slow disk", Limit::kDisk, "worker:0",
     "The input of worker:0 is the limit, at read: with 1 thread it could make 300 images/s, and "
     "the rest of the step could take 646 images/s. With files on a faster disk",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       make_input_slow(run.tasks[0], "read");
     }},
    {"a slow disk, and an evaluation after training", Limit::kDisk, "worker:0", "at read",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       make_input_slow(run.tasks[0], "read");
       run.tasks[0].input->seconds = 60;
     }},
    {"a slow stage", Limit::kInput, "worker:0", "at decode",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       make_input_slow(run.tasks[0], "decode");
     }},
    {"a slow stage, and cores for it", Limit::kInput, "worker:0",
     "--input-threads 4: 4 → 10.1 steps/s.",
     [](Report& run) {
       run.cores = 4;
       run.tasks = {worker_report(0)};
       make_input_slow(run.tasks[0], "distort");
     }},
    {"bad records", Limit::kBadRecords, "worker:1", "25% of the records were bad",
     [](Report& run) {
       make_input_slow(run.tasks[1], "decode");
       run.tasks[1].input->bad = 4000;
     }},
    {"the input lacks cores", Limit::kInputCores, "worker:0", "its threads lacked cores",
     [](Report& run) {
       make_input_slow(run.tasks[0], "");
       run.tasks[0].input->stages[0].seconds = 0.5;
     }},
    {"slow copies of batches", Limit::kInputCopy, "worker:0", "went to copying them",
     [](Report& run) {
       make_input_slow(run.tasks[0], "");
       run.tasks[0].input->waited = 0.5;
     }},
    {"batches without a pipeline", Limit::kInput, "worker:0",
     "Making batches takes 60% of the time of worker:0.",
     [](Report& run) {
       slow_down(run.tasks[0], "input", 1.5);
       run.tasks[0].use.pressure.machine_cores = 1;
     }},
    {"batches without a pipeline, which cores that are all busy could not make ahead",
     Limit::kNothing, "", "Nothing", [](Report& run) { slow_down(run.tasks[0], "input", 0.3); }},
};

TEST(InputCauses, AreToldWithTheirTask) { expect_told(kStagedInput); }

}  // namespace
}  // namespace paceline
