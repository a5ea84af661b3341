// Tests of a task that joins a job which may be over.
#include "train/session_job.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_save.h"
#include "checkpoint/checkpoints.h"
#include "net/held_ports.h"
#include "params/job_control.h"
#include "params/testing/fast_clock.h"
#include "run/report/run_folder.h"
#include "train/testing/quiet.h"

namespace paceline {
namespace {

/// One of two tasks. The other one has ended, and no launcher says so.
class LeftJob : public ::testing::TestWithParam<const char*> {
 protected:
  LeftJob() {
    cluster_.process = Cluster::Process::kTask;
    cluster_.spec.workers = ports_.addresses();
    if (GetParam() == std::string("async")) {
      cluster_.spec.ps = {cluster_.spec.workers.back()};
      cluster_.spec.workers.pop_back();
    }
    cluster_.task = {TaskId::Role::kWorker, 0};
    cluster_.cluster_id = "test";
    cluster_.strategy.name = GetParam();
    cluster_.links.join_timeout_s = 1e6;
    run_.out = folder_.path();
    run_.resume = true;
    const Checkpoints checkpoints(checkpoints_folder(run_));
    CheckpointSave save(checkpoints, 5);
    CheckpointIndex index;
    index.global_step = 5;
    save.finish(index);
  }
  void join() {
    StepAccount account(clock_);
    const SessionJob job({.cluster = cluster_, .run = run_, .account = &account},
                         {{.name = "w", .shape = {2}}});
  }

  const HeldPorts ports_{2};
  const TemporaryFolder folder_;
  FastClock clock_;
  Cluster cluster_;
  RunOptions run_ = quiet(5);
};

INSTANTIATE_TEST_SUITE_P(Strategies, LeftJob, ::testing::Values("allreduce", "async"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(LeftJob, IsOverIfTheCheckpointThatItGoesOnFromHasTheLastStep) {
  EXPECT_THROW(join(), JobIsOver);
}

}  // namespace
}  // namespace paceline
