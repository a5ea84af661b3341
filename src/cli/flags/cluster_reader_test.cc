#include "cli/flags/cluster_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/flags/testing/read_flags.h"

namespace paceline {
namespace {

using testing::HasSubstr;

TEST(Flags, NothingMeansAlone) {
  const Parsed parsed = read("");
  EXPECT_EQ(parsed.cluster.process, Cluster::Process::kAlone);
  EXPECT_EQ(parsed.cluster.strategy.name, "alone");
  EXPECT_TRUE(parsed.cluster.is_chief());
  EXPECT_EQ(parsed.cluster.device.kind, "cpu");
  EXPECT_EQ(parsed.cluster.threads, 0);
  EXPECT_FALSE(parsed.run.steps.has_value());
  EXPECT_EQ(parsed.run.seed, 1U);
}

TEST(Flags, WhatARunLeaves) {
  const RunOptions none = read("").run;
  EXPECT_EQ(none.out, "");
  const RunOptions defaults = read("--out d").run;
  EXPECT_EQ(defaults.save_every, Interval(std::chrono::seconds(600)));
  EXPECT_EQ(defaults.keep, 5);
  EXPECT_EQ(defaults.summary_every, Interval(20));
  EXPECT_EQ(read("--out d --summary-every 2s").run.summary_every.seconds, 2);
  EXPECT_FALSE(defaults.summary_of.any());
  const SummaryOf of = read("--out d --summary-of images,gradients").run.summary_of;
  EXPECT_TRUE(of.images && of.gradients && !of.activations);
  const RunOptions run =
      read("--out d --resume --save-every 20 --keep 2 --init-from f --init-only a* --init-only b")
          .run;
  EXPECT_EQ(run.out, "d");
  EXPECT_TRUE(run.resume);
  EXPECT_EQ(run.save_every, Interval(20));
  EXPECT_EQ(run.keep, 2);
  EXPECT_EQ(run.init_from, "f");
  EXPECT_EQ(run.init_only, (std::vector<std::string>{"a*", "b"}));
  EXPECT_FALSE(run.keep_best);
  const std::optional<KeepBest> smallest = read("--out d --keep-best loss/valid").run.keep_best;
  EXPECT_TRUE(smallest && smallest->name == "loss/valid" && !smallest->largest);
  const std::optional<KeepBest> largest = read("--out d --keep-best a:b:max").run.keep_best;
  EXPECT_TRUE(largest && largest->name == "a:b" && largest->largest);
  EXPECT_EQ(read("--out d --save-every 1.5s").run.save_every.seconds, 1.5);
}

TEST(Flags, TimelineOfSomeSteps) {
  EXPECT_EQ(read("").observers.dashboard.at, "");
  EXPECT_EQ(read("--dashboard :8080").observers.dashboard.at, "127.0.0.1:8080");
  EXPECT_EQ(read("--dashboard 8080").observers.dashboard.at, "127.0.0.1:8080");
  EXPECT_EQ(read("--dashboard [::1]:0").observers.dashboard.at, "[::1]:0");
  EXPECT_EQ(read("--dashboard 0 --dashboard-token t").observers.dashboard.token, "t");
  EXPECT_EQ(read("--dashboard 0.0.0.0:0 --dashboard-token t --insecure").observers.dashboard.at,
            "0.0.0.0:0");
  EXPECT_EQ(read("").run.timeline, "");
  const RunOptions run = read("--timeline t.json").run;
  EXPECT_EQ(run.timeline, "t.json");
  EXPECT_EQ(run.timeline_first, 10);
  EXPECT_EQ(run.timeline_end, 30);
  EXPECT_EQ(read("--timeline t --timeline-steps 0:5").run.timeline_first, 0);
  EXPECT_EQ(read("--timeline t --timeline-steps 0:5").run.timeline_end, 5);
}

TEST(Flags, PsAndWorkersLaunch) {
  const Parsed parsed =
      read("--ps 2 --workers=3 --steps 100 --on-failure continue --seed 7 --quiet");
  EXPECT_EQ(parsed.cluster.process, Cluster::Process::kLauncher);
  EXPECT_EQ(parsed.cluster.launch.ps, 2);
  EXPECT_EQ(parsed.cluster.launch.workers, 3);
  EXPECT_EQ(parsed.cluster.strategy.name, "async");
  EXPECT_EQ(parsed.cluster.links.kind, "auto");
  EXPECT_EQ(parsed.cluster.launch.on_failure, OnFailure::kContinue);
  EXPECT_FALSE(parsed.cluster.cluster_id.empty());
  EXPECT_EQ(parsed.run.steps, 100);
  EXPECT_EQ(parsed.run.seed, 7U);
  EXPECT_TRUE(parsed.run.quiet);
  EXPECT_TRUE(parsed.run.fused_update);
  EXPECT_FALSE(read("--no-fused-update").run.fused_update);
}

TEST(Flags, SecurityOfLinks) {
  const Security usual = read("--ps 1 --workers 2").cluster.links.security;
  EXPECT_EQ(usual.tls, Tls::kOffHost);
  EXPECT_EQ(usual.key_file, "");
  const Security key = read("--ps 1 --workers 2 --tls on --key-file k").cluster.links.security;
  EXPECT_EQ(key.tls, Tls::kAlways);
  EXPECT_EQ(key.key_file, "k");
  const Security signed_by =
      read("--ps 1 --workers 2 --tls off-host --tls-cert c --tls-key p --tls-ca a")
          .cluster.links.security;
  EXPECT_EQ(signed_by.tls, Tls::kOffHost);
  EXPECT_EQ(signed_by.certificate, "c");
  EXPECT_EQ(signed_by.certificate_key, "p");
  EXPECT_EQ(signed_by.authority, "a");
  EXPECT_EQ(read("--ps 1 --workers 2 --insecure").cluster.links.security.tls, Tls::kNever);
}

TEST(Flags, AccumulateIsForEveryCluster) {
  EXPECT_EQ(read("").cluster.train.accumulate, 1);
  EXPECT_EQ(read("--accumulate 4").cluster.train.accumulate, 4);
  const Cluster ssp = read("--ps 1 --workers 2 --strategy ssp --staleness 3").cluster;
  EXPECT_EQ(ssp.strategy.name, "ssp");
  EXPECT_EQ(ssp.strategy.staleness, 3);
  EXPECT_EQ(read("--accumulate 4 --ps 1 --workers 2").cluster.train.accumulate, 4);
}

TEST(Flags, LocalStepsAreThoseOfAClusterWithOrWithoutParameterServers) {
  for (const char* const cluster : {"--ps 1 --workers 2", "--ps 0 --workers 2"}) {
    const std::string local = std::string(cluster) + " --strategy local_sgd ";
    EXPECT_EQ(read(local).cluster.strategy.name, "local_sgd");
    EXPECT_EQ(read(local).cluster.strategy.local_steps, 20);
    const Cluster set =
        read(local + "--local-steps 7 --outer-rate 0.5 --outer-momentum 0 --outer-fragments 2")
            .cluster;
    EXPECT_EQ(set.strategy.local_steps, 7);
    EXPECT_EQ(set.strategy.outer_rate, 0.5f);
    EXPECT_EQ(set.strategy.outer_momentum, 0.0f);
    EXPECT_EQ(set.strategy.outer_fragments, 2);
  }
}

TEST(Flags, OldNamesOfStrategiesAreReadWithAHint) {
  const auto named = [](const std::string& flags) {
    const Parsed parsed = read(flags);
    return parsed.cluster.strategy.name + ": " + parsed.old_name_hint;
  };
  EXPECT_EQ(
      named("--strategy local"),
      "alone: --strategy local is now called alone: the next version reads the new name only");
  EXPECT_EQ(named("--strategy local --ps 0 --workers 2"),
            "local_sgd: --strategy local is now called local_sgd: the next version reads the new "
            "name only");
  EXPECT_EQ(named("--strategy mixed --ps 1 --workers 2"),
            "hybrid: --strategy mixed is now called hybrid: the next version reads the new name "
            "only");
  EXPECT_EQ(named("--strategy sync --ps 1 --workers 2"), "sync: ");
}

TEST(Flags, AnOuterRuleTakesChangesInRoundsOrAsTheyArrive) {
  const std::string local = "--ps 1 --workers 3 --strategy local_sgd ";
  EXPECT_FALSE(read(local).cluster.strategy.outer_async);
  EXPECT_FALSE(read(local + "--outer sync").cluster.strategy.outer_async);
  EXPECT_TRUE(read(local + "--outer async").cluster.strategy.outer_async);
}

TEST(Flags, TowersAreDevicesOfOneTask) {
  EXPECT_EQ(read("").cluster.towers, 1);
  EXPECT_EQ(read("--towers 8 --device sim --sim-step-ms 1").cluster.towers, 8);
  const Cluster both = read("--ps 1 --workers 2 --towers 3 --device sim --sim-step-ms 1").cluster;
  EXPECT_EQ(both.towers, 3);
  EXPECT_EQ(both.launch.workers, 2);
  const char* const ps = "--towers 64 --threads 1 --cluster ps=a:1;worker=b:1 --task ps:0";
  EXPECT_EQ(read(ps).cluster.towers, 64) << "a ps has no towers: its machine may be smaller";
}

TEST(Flags, ASimulatedDeviceThatComputesCanResume) {
  const Parsed parsed = read(
      "--out d --resume --device sim --sim-step-ms 1 --sim-compute "
      "--sim-copy-gbps 12.5");
  EXPECT_TRUE(parsed.run.resume);
  EXPECT_TRUE(parsed.cluster.device.sim_compute);
  EXPECT_EQ(parsed.cluster.device.sim_copy_gbps, 12.5);
}

TEST(Flags, HybridIsSaidByItsNameOrByItsTwoParts) {
  EXPECT_EQ(read("--ps 1 --workers 2 --sparse ps --dense allreduce").cluster.strategy.name,
            "hybrid");
  EXPECT_EQ(read("--ps 1 --workers 2 --strategy hybrid").cluster.strategy.name, "hybrid");
}

TEST(Flags, RoundsAreOfTheStrategySync) {
  const Cluster all = read("--ps 2 --workers 3 --strategy sync").cluster;
  EXPECT_EQ(all.strategy.name, "sync");
  EXPECT_EQ(all.strategy.replicas, 0);
  EXPECT_EQ(all.strategy.late, LateContribution::kDrop);
  const Cluster some =
      read("--ps 1 --workers 3 --strategy sync --replicas-to-aggregate 2 --late fold").cluster;
  EXPECT_EQ(some.strategy.replicas, 2);
  EXPECT_EQ(some.strategy.late, LateContribution::kFold);
}

TEST(Flags, RecordsAreSharedOutWhereSeveralTasksTrain) {
  EXPECT_FALSE(read("--cluster ps=a:1;worker=b:1 --task worker:0").cluster.shares_records());
  EXPECT_TRUE(
      read("--cluster ps=a:1;worker=b:1 --task worker:0 --shard dynamic").cluster.shares_records());
  EXPECT_FALSE(read("--shard dynamic").cluster.shares_records()) << "one process has all";
}

TEST(Flags, WorkersWithoutAPsTrainByAllReduce) {
  const Cluster local = read("--ps 0 --workers 3").cluster;
  EXPECT_EQ(local.process, Cluster::Process::kLauncher);
  EXPECT_EQ(local.strategy.name, "allreduce");
  EXPECT_EQ(read("--workers 2 --strategy allreduce").cluster.strategy.name, "allreduce");
  const Cluster task = read("--cluster worker=a:1,b:1 --task worker:1").cluster;
  EXPECT_EQ(task.strategy.name, "allreduce");
  EXPECT_EQ(task.spec.workers.size(), 2u);
  EXPECT_EQ(
      read("--worker-hosts a:1,b:1 --task worker:0 --strategy allreduce").cluster.strategy.name,
      "allreduce");
}

TEST(Flags, EachLaunchIsAClusterOfItsOwn) {
  EXPECT_NE(read("--ps 1 --workers 1").cluster.cluster_id,
            read("--ps 1 --workers 1").cluster.cluster_id);
}

TEST(Flags, SpellingsOfOneTaskAreEqual) {
  for (const char* text :
       {"--cluster ps=a:1,b:1;worker=c:1,d:1 --task worker:1",
        "--ps-hosts a:1,b:1 --worker-hosts c:1,d:1 --job-name worker --task-index 1",
        "--ps_hosts=a:1,b:1 --worker_hosts=c:1,d:1 --job_name=worker --task_index=1"}) {
    const Cluster cluster = read(text).cluster;
    EXPECT_EQ(cluster.process, Cluster::Process::kTask) << text;
    EXPECT_EQ(cluster.spec.str(), "ps=a:1,b:1;worker=c:1,d:1") << text;
    EXPECT_EQ(cluster.task.str(), "worker:1") << text;
    EXPECT_EQ(cluster.cluster_id,
              read("--cluster ps=a:1,b:1;worker=c:1,d:1 --task ps:0").cluster.cluster_id);
  }
}

TEST(Flags, ExistingServersNeedNoPs) {
  const Cluster launcher = read("--workers 2 --ps-hosts a:1,b:1 --existing-servers").cluster;
  EXPECT_EQ(launcher.process, Cluster::Process::kLauncher);
  EXPECT_TRUE(launcher.existing_servers);
  EXPECT_EQ(launcher.launch.ps, 0);
  EXPECT_EQ(launcher.spec.str(), "ps=a:1,b:1");
  const Cluster task =
      read("--ps-hosts a:1 --worker-hosts b:1 --existing-servers --task worker:0").cluster;
  EXPECT_EQ(task.process, Cluster::Process::kTask);
  EXPECT_TRUE(task.existing_servers);
  const Cluster launched = read(
                               "--workers 2 --ps-hosts a:1 --existing-servers --launched --cluster "
                               "ps=a:1;worker=b:1,c:1 --task worker:1")
                               .cluster;
  EXPECT_EQ(launched.task.str(), "worker:1");
  EXPECT_THAT(refusal("--workers 2 --existing-servers"), HasSubstr("needs --ps-hosts"));
  EXPECT_THAT(refusal("--ps-hosts a:1 --worker-hosts b:1 --existing-servers --task ps:0"),
              HasSubstr("paceline server"));
  EXPECT_THAT(refusal("--existing-servers"), HasSubstr("--workers"));
}

TEST(Flags, BindTakesThePortOfTheSpec) {
  const std::string task = "--cluster ps=a:71;worker=c:1 --task ps:0 --bind ";
  EXPECT_EQ(read(task + "0.0.0.0").cluster.links.bind, "0.0.0.0:71");
  EXPECT_EQ(read(task + "0.0.0.0:5").cluster.links.bind, "0.0.0.0:5");
  EXPECT_EQ(read(task + "[::1]").cluster.links.bind, "[::1]:71");
  EXPECT_THAT(refusal(task + "0.0.0.0:x"), HasSubstr("--bind: '0.0.0.0:x' is no address"));
}

TEST(Flags, LastOfTwoCounts) { EXPECT_EQ(read("--steps 5 --steps 9").run.steps, 9); }

TEST(Flags, WhatTheLauncherStartsIsATask) {
  const Cluster cluster =
      read(
          "--ps 1 --workers 2 --launched --cluster ps=a:1;worker=b:1,c:1 --task worker:1 "
          "--cluster-id x --device sim:1 --sim-step-ms 3 --threads 2")
          .cluster;
  EXPECT_EQ(cluster.process, Cluster::Process::kTask);
  EXPECT_EQ(cluster.task.str(), "worker:1");
  EXPECT_EQ(cluster.cluster_id, "x");
  EXPECT_EQ(cluster.device.index, 1);
  EXPECT_EQ(cluster.threads, 2);
}

TEST(Flags, Devices) {
  EXPECT_EQ(read("--device cpu:0").cluster.device.kind, "cpu");
  const DeviceChoice sim = read("--device sim:3 --sim-gflops 500").cluster.device;
  EXPECT_EQ(sim.kind, "sim");
  EXPECT_EQ(sim.index, 3);
  EXPECT_EQ(sim.sim_gflops, 500);
  EXPECT_EQ(read("--device sim --sim-step-ms 3.5 --ps 1 --workers 2").cluster.device.index, -1);
  EXPECT_EQ(read("--device sim --sim-step-ms 3.5").cluster.device.index, 0);
}

TEST(Flags, OnlyTheStragglerIsSlower) {
  const auto device_of = [](const std::string& task, const std::string& speed) {
    return read("--cluster ps=a:1;worker=b:1,c:1 --device sim --sim-straggler 1:2.5 --task " +
                task + " " + speed)
        .cluster.device;
  };
  EXPECT_EQ(device_of("worker:0", "--sim-step-ms 4").sim_step_ms, 4);
  EXPECT_EQ(device_of("worker:1", "--sim-step-ms 4").sim_step_ms, 10);
  EXPECT_EQ(device_of("worker:1", "--sim-gflops 5").sim_gflops, 2);
  EXPECT_EQ(device_of("ps:0", "--sim-step-ms 4").sim_step_ms, 4);
  const DeviceChoice copies =
      read(
          "--cluster ps=a:1;worker=b:1,c:1 --device sim --sim-step-ms 4 --sim-copy-gbps 6 "
          "--sim-straggler 1:1:3 --task worker:1")
          .cluster.device;
  EXPECT_EQ(copies.sim_step_ms, 4);
  EXPECT_EQ(copies.sim_copy_gbps, 2);
}

TEST(Flags, Precision) {
  EXPECT_EQ(read("").cluster.train.precision, DType::kFloat32);
  EXPECT_EQ(read("--precision float32").cluster.train.precision, DType::kFloat32);
  EXPECT_EQ(read("--precision bfloat16").cluster.train.precision, DType::kBFloat16);
  const Cluster on_gpu = read("--precision tf32 --device cuda --deterministic").cluster;
  EXPECT_EQ(on_gpu.train.precision, DType::kFloat32);
  EXPECT_TRUE(on_gpu.device.cuda_tf32 && on_gpu.device.cuda_deterministic);
  EXPECT_FALSE(read("--device cuda").cluster.device.cuda_tf32);
}

TEST(Flags, Wire) {
  EXPECT_EQ(read("--ps 1 --workers 1").cluster.links.wire, DType::kFloat32);
  EXPECT_EQ(read("--ps 1 --workers 1 --wire float32").cluster.links.wire, DType::kFloat32);
  const Cluster cluster = read("--ps 1 --workers 1 --wire bfloat16 --error-feedback").cluster;
  EXPECT_EQ(cluster.links.wire, DType::kBFloat16);
  EXPECT_TRUE(cluster.links.error_feedback);
  EXPECT_FALSE(read("--ps 1 --workers 1 --wire bfloat16").cluster.links.error_feedback);
  EXPECT_EQ(read("--ps 1 --workers 1 --wire int8").cluster.links.wire, DType::kUInt8);
  for (const char* always : {"float16", "int8"}) {
    EXPECT_TRUE(
        read(std::string("--ps 1 --workers 1 --wire ") + always).cluster.links.error_feedback);
  }
}

TEST(Flags, TopK) {
  EXPECT_EQ(read("--ps 1 --workers 1").cluster.links.top_k, 0);
  const Cluster cluster = read("--ps 1 --workers 1 --top-k 8 --wire bfloat16").cluster;
  EXPECT_EQ(cluster.links.top_k, 8);
  EXPECT_EQ(cluster.links.wire, DType::kBFloat16);
  EXPECT_TRUE(cluster.links.error_feedback);
}

TEST(Flags, HelpTeachesByExample) {
  testing::internal::CaptureStdout();
  CommandLine line{"trainer", "Trains.", cluster_examples("trainer"), cluster_flags()};
  EXPECT_FALSE(parse(line, {"--help"}).has_value());
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("trainer --steps 1000 --ps 1 --workers 2"));
  EXPECT_THAT(help, HasSubstr("--ps-hosts LIST"));
  EXPECT_THAT(help, testing::Not(HasSubstr("--launched")));
}

}  // namespace
}  // namespace paceline
