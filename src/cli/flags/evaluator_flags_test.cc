#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cli/flags/testing/read_flags.h"
#include "launch/launcher.h"

namespace paceline {
namespace {

// For each flag, a use of it together with --evaluator, and with the flags that it needs. Empty for
// flags of a task that is started by itself.
const std::map<std::string, std::string> kUses = {
    {"--ps", "--ps 2"},
    {"--workers", "--workers 3"},
    {"--evaluator", "--evaluator"},
    {"--on-failure", "--on-failure continue"},
    {"--lab-hosts", "--lab-hosts 2"},
    {"--lab-place", "--lab-place ps/1/1"},
    {"--lab-gbps", "--lab-hosts 2 --lab-gbps 2"},
    {"--lab-delay-ms", "--lab-hosts 2 --lab-delay-ms 2"},
    {"--cluster", ""},
    {"--task", ""},
    {"--ps-hosts", "--existing-servers --ps-hosts a:1"},
    {"--worker-hosts", ""},
    {"--job-name", ""},
    {"--task-index", ""},
    {"--bind", ""},
    {"--cluster-id", "--cluster-id a"},
    {"--existing-servers", "--existing-servers --ps-hosts a:1"},
    {"--strategy", "--strategy sync"},
    {"--sparse", "--sparse ps --dense allreduce"},
    {"--dense", "--sparse ps --dense allreduce"},
    {"--staleness", "--strategy ssp --staleness 3"},
    {"--replicas-to-aggregate", "--strategy sync --replicas-to-aggregate 1"},
    {"--late", "--strategy sync --late fold"},
    {"--local-steps", "--strategy local_sgd --local-steps 5"},
    {"--outer-rate", "--strategy local_sgd --outer-rate 0.5"},
    {"--outer-momentum", "--strategy local_sgd --outer-momentum 0.1"},
    {"--outer-fragments", "--strategy local_sgd --outer-fragments 2"},
    {"--outer", "--strategy local_sgd --outer async"},
    {"--sync-batch-norm", "--ps 0 --sync-batch-norm"},
    {"--on-nan", "--on-nan skip"},
    {"--link", "--link tcp"},
    {"--collectives", "--ps 0 --collectives link"},
    {"--tls", "--tls on"},
    {"--key-file", "--key-file k"},
    {"--tls-cert", "--tls-cert c --tls-key k --tls-ca a"},
    {"--tls-key", "--tls-cert c --tls-key k --tls-ca a"},
    {"--tls-ca", "--tls-cert c --tls-key k --tls-ca a"},
    {"--insecure", "--insecure"},
    {"--join-timeout", "--join-timeout 9"},
    {"--reconnect-timeout", "--reconnect-timeout 9"},
    {"--wire", "--wire bfloat16"},
    {"--top-k", "--top-k 8"},
    {"--error-feedback", "--wire bfloat16 --error-feedback"},
    {"--show-placement", "--show-placement"},
    {"--device", "--device sim --sim-step-ms 1"},
    {"--towers", "--towers 2 --device sim --sim-step-ms 1"},
    {"--sim-step-ms", "--device sim --sim-step-ms 1"},
    {"--sim-gflops", "--device sim --sim-gflops 1"},
    {"--sim-copy-gbps", "--device sim --sim-step-ms 1 --sim-copy-gbps 1"},
    {"--sim-straggler", "--device sim --sim-step-ms 1 --sim-straggler 1:3"},
    {"--sim-compute", "--device sim --sim-step-ms 1 --sim-compute"},
    {"--cuda-check", "--device cuda --cuda-check"},
    {"--deterministic", "--device cuda --deterministic"},
    {"--threads", "--threads 1"},
    {"--precision", "--precision bfloat16"},
    {"--launched", ""},
    {"--one-task", "--one-task"},
    {"--placed", ""},
    {"--copies-by", ""},
    {"--copy-gate", ""},
    {"--launcher", "--launcher none"},
    {"--alone", "--alone"},
    {"--steps", "--steps 9"},
    {"--seconds", "--seconds 9"},
    {"--config", "--config f"},
    {"--accumulate", "--accumulate 2"},
    {"--shard", "--shard dynamic"},
    {"--seed", "--seed 9"},
    {"--no-fused-update", "--no-fused-update"},
    {"--quiet", "--quiet"},
    {"--log-level", "--log-level debug"},
    {"--log-format", "--log-format json"},
    {"--dry-run", "--dry-run"},
    {"--predict", "--predict"},
    {"--hosts", "--predict --hosts /dev/null"},
    {"--json", "--predict --json f.json"},
    {"--plot", "--predict --plot f.svg"},
    {"--no-trial", "--predict --no-trial"},
    {"--time-limit", "--predict --time-limit 5"},
    {"--roof", "--roof /dev/null"},
    {"--report", "--report /dev/null"},
    {"--timeline", "--timeline /dev/null"},
    {"--timeline-steps", "--timeline-steps 0:5"},
    {"--dashboard", "--dashboard :0"},
    {"--dashboard-token", "--dashboard :0 --dashboard-token t"},
    {"--dashboard-cert", "--dashboard :0 --dashboard-cert c --dashboard-key k"},
    {"--dashboard-key", "--dashboard :0 --dashboard-cert c --dashboard-key k"},
    {"--out", "--out d"},
    {"--summary-every", "--summary-every 9"},
    {"--summary-of", "--summary-of images"},
    {"--resume", "--resume"},
    {"--overwrite", "--overwrite"},
    {"--save-every", "--save-every 9"},
    {"--keep", "--keep 9"},
    {"--keep-best", "--keep-best loss/valid"},
    {"--init-from", "--init-from f"},
    {"--init-only", "--init-from f --init-only a*"},
};

std::string launcher_with(const std::string& words) {
  const bool existing = words.find("--ps-hosts") != std::string::npos;
  return fmt::format("{} --workers 2 --out d --evaluator {}", existing ? "" : "--ps 1", words);
}

TEST(EvaluatorFlags, OfALauncherAreReadByTheEvaluatorThatItStarts) {
  const std::string evaluator = fmt::format("{}", fmt::join(evaluator_arguments(), " "));
  for (const auto& flags : {cluster_flags(), run_flags()}) {
    for (const Flag& flag : flags) {
      const auto use = kUses.find(flag.name);
      ASSERT_NE(use, kUses.end()) << "say here how " << flag.name << " is given";
      if (use->second.empty()) continue;
      const std::string line = launcher_with(use->second);
      EXPECT_EQ(read(line).cluster.process, Cluster::Process::kLauncher) << line;
      const Cluster cluster = read(fmt::format("{} {}", line, evaluator)).cluster;
      EXPECT_EQ(cluster.process, Cluster::Process::kEvaluator) << line;
      EXPECT_TRUE(cluster.launch.launched);
    }
  }
}

// An evaluator that is started by itself may also be given the flags of its job.
TEST(EvaluatorFlags, OfAJobAreHeededByItsTrainingTasksAlone) {
  const Cluster cluster =
      read(
          "--task evaluator --out d --strategy sync --wire int8 --towers 64 --threads 1 "
          "--reconnect-timeout 9 --accumulate 2 --lab-hosts 2 --join-timeout 7")
          .cluster;
  EXPECT_EQ(cluster.process, Cluster::Process::kEvaluator);
  EXPECT_EQ(cluster.towers, 1);
  EXPECT_EQ(cluster.links.join_timeout_s, 7);
}

}  // namespace
}  // namespace paceline
