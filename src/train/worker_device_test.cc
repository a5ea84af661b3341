#include "train/worker_device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cores.h"

namespace paceline {
namespace {

TEST(WorkerDevice, HasAllCoresAlone) {
  const DeviceOptions device = worker_device({});
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_EQ(device.threads, usable_cores());
}

TEST(WorkerDevice, SharesTheCoresWithTheOtherWorkersOfALauncher) {
  Cluster cluster;
  cluster.process = Cluster::Process::kLauncher;
  cluster.launch.workers = 2;
  EXPECT_EQ(worker_device(cluster).threads, std::max(1, usable_cores() / 2));
}

TEST(WorkerDevice, IsWhatTheFlagsSay) {
  Cluster cluster;
  cluster.threads = 3;
  cluster.device = {.kind = "sim",
                    .index = 1,
                    .sim_step_ms = 4,
                    .sim_gflops = 5,
                    .sim_copy_gbps = 6,
                    .sim_compute = true};
  const DeviceOptions device = worker_device(cluster);
  EXPECT_EQ(device.kind, "sim");
  EXPECT_EQ(device.index, 1);
  EXPECT_EQ(device.threads, 3);
  EXPECT_EQ(device.sim_step_ms, 4);
  EXPECT_EQ(device.sim_gflops, 5);
  EXPECT_EQ(device.sim_copy_gbps, 6);
  EXPECT_TRUE(device.sim_compute);
}

TEST(WorkerDevice, TowersShareTheThreads) {
  Cluster cluster;
  cluster.threads = 5;
  cluster.towers = 3;
  cluster.device = {.kind = "sim", .index = 6, .sim_step_ms = 4};
  for (const auto& [tower, threads] : {std::pair(0, 2), std::pair(1, 2), std::pair(2, 1)}) {
    EXPECT_EQ(tower_device(cluster, tower).threads, threads);
    EXPECT_EQ(tower_device(cluster, tower).index, 6 + tower);
    EXPECT_EQ(tower_device(cluster, tower).sim_step_ms, 4);
  }
  cluster.threads = 1;
  EXPECT_EQ(tower_device(cluster, 2).threads, 1);
}

}  // namespace
}  // namespace paceline
