// Tests that a command line is right once the remedy that its error names has been applied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "cli/flags/testing/read_flags.h"

namespace paceline {
namespace {

using testing::HasSubstr;

struct Remedy {
  const char* line;
  const char* remedy;  // in the error of the line
  const char* mended;  // the line with the remedy
};

void PrintTo(const Remedy& remedy, std::ostream* out) { *out << remedy.line; }

class Remedies : public testing::TestWithParam<Remedy> {};

TEST_P(Remedies, AreInTheErrorAndHelp) {
  EXPECT_THAT(refusal(GetParam().line), HasSubstr(GetParam().remedy));
  EXPECT_NO_THROW(read(GetParam().mended)) << GetParam().mended;
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, Remedies,
    testing::Values(
        Remedy{"--workers 2", "--ps 1 starts", "--workers 2 --ps 1"},
        Remedy{"--workers 2", "--ps 0 trains", "--workers 2 --ps 0"},
        Remedy{"--ps 1", "--ps 1 --workers 2", "--ps 1 --workers 2"},
        Remedy{"--ps 0", "--workers 2", "--ps 0 --workers 2"},
        Remedy{"--on-failure stop", "needs --ps", "--ps 1 --workers 2 --on-failure stop"},
        Remedy{"--cluster ps=a:1;worker=b:1", "add --task worker:0",
               "--cluster ps=a:1;worker=b:1 --task worker:0"},
        Remedy{"--cluster ps=a:1;worker=b:1", "--ps M --workers N", "--ps 1 --workers 1"},
        Remedy{"--task worker:0", "add --cluster", "--task worker:0 --cluster ps=a:1;worker=b:1"},
        Remedy{"--ps-hosts a:1 --job-name ps --task-index 0", "needs --worker-hosts",
               "--ps-hosts a:1 --worker-hosts b:1 --job-name ps --task-index 0"},
        Remedy{"--worker-hosts a:1,b:1 --job-name worker --task-index 0", "--strategy allreduce",
               "--worker-hosts a:1,b:1 --job-name worker --task-index 0 --strategy allreduce"},
        Remedy{"--worker-hosts a:1,b:1 --job-name worker --task-index 0", "needs --ps-hosts",
               "--worker-hosts a:1,b:1 --job-name worker --task-index 0 --ps-hosts c:1"},
        Remedy{"--ps-hosts a:1 --worker-hosts b:1 --job-name ps", "needs --task-index",
               "--ps-hosts a:1 --worker-hosts b:1 --job-name ps --task-index 0"},
        Remedy{"--bind 0.0.0.0", "needs --cluster",
               "--bind 0.0.0.0 --cluster ps=a:1;worker=b:1 --task ps:0"},
        Remedy{"--existing-servers", "needs --workers",
               "--existing-servers --ps-hosts a:1 --workers 2"},
        Remedy{"--existing-servers --workers 2", "needs --ps-hosts",
               "--existing-servers --workers 2 --ps-hosts a:1"},
        Remedy{"--evaluator --out d", "needs --workers", "--evaluator --out d --ps 1 --workers 2"},
        Remedy{"--evaluator --out d", "--task evaluator", "--task evaluator --out d"},
        Remedy{"--evaluator --ps 1 --workers 2", "needs --out",
               "--evaluator --ps 1 --workers 2 --out d"}));

INSTANTIATE_TEST_SUITE_P(
    Strategies, Remedies,
    testing::Values(
        Remedy{"--strategy ssp", "add --ps 1 --workers 2", "--strategy ssp --ps 1 --workers 2"},
        Remedy{"--strategy allreduce", "give --ps 0 --workers 2",
               "--strategy allreduce --ps 0 --workers 2"},
        Remedy{"--ps 1 --workers 2 --strategy allreduce", "give --ps 0",
               "--ps 0 --workers 2 --strategy allreduce"},
        Remedy{"--cluster ps=a:1;worker=b:1,c:1 --task worker:0 --strategy allreduce",
               "leave them out of the cluster",
               "--cluster worker=b:1,c:1 --task worker:0 --strategy allreduce"},
        Remedy{"--ps 0 --workers 2 --strategy async", "give --ps 1 instead of --ps 0",
               "--ps 1 --workers 2 --strategy async"},
        Remedy{"--cluster worker=a:1,b:1 --task worker:0 --strategy async",
               "name them in the cluster, too",
               "--cluster ps=c:1;worker=a:1,b:1 --task worker:0 --strategy async"},
        Remedy{"--ps 1 --workers 1 --strategy hybrid", "take --strategy sync",
               "--ps 1 --workers 1 --strategy sync"},
        Remedy{"--ps 1 --workers 2 --strategy hybrid --on-nan skip", "take --strategy sync",
               "--ps 1 --workers 2 --strategy sync --on-nan skip"},
        Remedy{"--ps 1 --workers 2 --strategy hybrid --shard dynamic", "take --strategy sync",
               "--ps 1 --workers 2 --strategy sync --shard dynamic"},
        Remedy{"--ps 1 --workers 2 --sparse ps", "needs --dense: --dense allreduce",
               "--ps 1 --workers 2 --sparse ps --dense allreduce"},
        Remedy{"--ps 1 --workers 2 --staleness 2", "needs --strategy ssp",
               "--ps 1 --workers 2 --staleness 2 --strategy ssp"},
        Remedy{"--ps 1 --workers 2 --replicas-to-aggregate 1", "needs --strategy sync",
               "--ps 1 --workers 2 --replicas-to-aggregate 1 --strategy sync"},
        Remedy{"--ps 0 --workers 2 --strategy local_sgd --late fold", "or local_sgd, and --ps",
               "--ps 1 --workers 2 --strategy local_sgd --late fold"},
        Remedy{"--local-steps 4", "needs --strategy local_sgd and several workers",
               "--local-steps 4 --strategy local_sgd --ps 1 --workers 2"},
        Remedy{"--ps 0 --workers 2 --strategy local_sgd --outer async", "needs --ps",
               "--ps 1 --workers 2 --strategy local_sgd --outer async"},
        Remedy{"--ps 1 --workers 2 --sync-batch-norm", "needs an all-reduce (--ps 0 --workers N)",
               "--ps 0 --workers 2 --sync-batch-norm"},
        Remedy{"--ps 0 --workers 2 --sync-batch-norm --device sim --sim-step-ms 1", "--device cpu",
               "--ps 0 --workers 2 --sync-batch-norm --device cpu"}));

INSTANTIATE_TEST_SUITE_P(
    Others, Remedies,
    testing::Values(
        Remedy{"--ps 1 --workers 1 --error-feedback", "needs --wire bfloat16",
               "--ps 1 --workers 1 --error-feedback --wire bfloat16"},
        Remedy{"--ps 1 --workers 1 --error-feedback", "or --top-k",
               "--ps 1 --workers 1 --error-feedback --top-k 4"},
        Remedy{"--precision float16", "bfloat16", "--precision bfloat16"},
        Remedy{"--device gpu", "cuda", "--device cuda"},
        Remedy{"--device gpu", "--device sim --sim-step-ms MS", "--device sim --sim-step-ms 3"},
        Remedy{"--device sim", "needs --sim-step-ms MS or --sim-gflops G",
               "--device sim --sim-gflops 3"},
        Remedy{"--sim-step-ms 3", "needs --device sim", "--sim-step-ms 3 --device sim"},
        Remedy{"--ps 1 --workers 2 --device sim --sim-step-ms 3 --sim-straggler 1:1:2",
               "need --sim-copy-gbps G",
               "--ps 1 --workers 2 --device sim --sim-step-ms 3 --sim-straggler 1:1:2 "
               "--sim-copy-gbps 3"},
        Remedy{"--resume", "needs --out", "--resume --out d"},
        Remedy{"--init-only w", "needs --init-from", "--init-only w --init-from f"},
        Remedy{"--timeline-steps 1:2", "needs --timeline", "--timeline-steps 1:2 --timeline t"},
        Remedy{"--out d --resume --device sim --sim-step-ms 1", "without --sim-compute",
               "--out d --resume --device sim --sim-step-ms 1 --sim-compute"}));

// A launcher adds --resume when it starts a task again; what the task then resumes is its own job.
TEST(Flags, ASimulatedTaskThatIsStartedAgainResumes) {
  const Parsed again = read(
      "--launched --cluster ps=a:1;worker=b:1 --task worker:0 --device sim --sim-step-ms 1 "
      "--out d --resume");
  EXPECT_TRUE(again.run.resume);
}

}  // namespace
}  // namespace paceline
