// Tests that copies between host and device, and ops on the host, are found as causes.
#include <gtest/gtest.h>

#include "explain/testing/staged_run.h"

namespace paceline {
namespace {

const StagedRun kStagedCopies[] = {
    {"slow memory of one worker's host", Limit::kSlowMemory, "worker:1",
     "worker:1's memory is slow: copies between it and the device take 62 ms of a step, and those "
     "of others 10. With memory as near as theirs: 16.58 →",
     [](Report& run) {
       slow_down(run.tasks[1], "compute", 0.52);
       run.tasks[0].copies_ms = 10;
       run.tasks[1].copies_ms = 62;
     }},
    {"slow copies to the devices", Limit::kCopies, "",
     "Copies between the memory of the host and that of the devices take 50 ms of each step, 33% "
     "of the time. With copies that take no time, up to: 13.33 → 20 steps/s.",
     [](Report& run) {
       for (int i : {0, 1}) {
         slow_down(run.tasks[std::size_t(i)], "compute", 0.5);
         run.tasks[std::size_t(i)].copies_ms = 50;
       }
     }},
    {"slow copies to the device", Limit::kCopies, "worker:0", "that of the device take 100 ms",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       slow_down(run.tasks[0], "compute", 1);
       run.tasks[0].copies_ms = 100;
     }},
    {"an op without a kernel for the device", Limit::kHostOps, "worker:0",
     "The host computes ops that the device has no kernels for: they take 100 ms of each step",
     [](Report& run) {
       run.tasks = {worker_report(0)};
       slow_down(run.tasks[0], "compute", 1);
       run.tasks[0].host_ops_ms = 100;
     }},
};

TEST(CopyCauses, AreToldWithTheirTask) { expect_told(kStagedCopies); }

}  // namespace
}  // namespace paceline
