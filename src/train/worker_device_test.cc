#include "train/worker_device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cores.h"

namespace paceline {
namespace {

TEST(WorkerDevice, HasAllCoresAlone) {
  const DeviceOptions device = worker_device({});
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_EQ(device.threads, cores_of_machine());
}

TEST(WorkerDevice, SharesTheCoresWithTheOtherWorkersOfALauncher) {
  Cluster cluster;
  cluster.role = Cluster::Role::kLauncher;
  cluster.local_workers = 2;
  EXPECT_EQ(worker_device(cluster).threads, std::max(1, cores_of_machine() / 2));
}

TEST(WorkerDevice, IsWhatTheFlagsSay) {
  Cluster cluster;
  cluster.threads = 3;
  cluster.device = {.kind = "sim", .index = 1, .sim_step_ms = 4, .sim_gflops = 5};
  const DeviceOptions device = worker_device(cluster);
  EXPECT_EQ(device.kind, "sim");
  EXPECT_EQ(device.index, 1);
  EXPECT_EQ(device.threads, 3);
  EXPECT_EQ(device.sim_step_ms, 4);
  EXPECT_EQ(device.sim_gflops, 5);
}

}  // namespace
}  // namespace paceline
