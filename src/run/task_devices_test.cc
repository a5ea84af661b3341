#include "run/task_devices.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(TaskDevices, EachTowerHasAThreadAndADevice) {
  Cluster cluster;
  cluster.device = {"sim", -1, 36, 0};
  EXPECT_EQ(threads_of_worker(cluster, 4, 2), 2);
  EXPECT_EQ(threads_of_worker(cluster, 1, 2), 1);
  cluster.towers = 3;
  EXPECT_EQ(threads_of_worker(cluster, 1, 2), 1);
  EXPECT_EQ(device_of(cluster, {TaskId::Role::kWorker, 1}), "sim:3");
  EXPECT_EQ(devices_of(cluster, {TaskId::Role::kWorker, 1}), "devices sim:3 to sim:5");
  cluster.device.kind = "cpu";
  EXPECT_EQ(threads_of_worker(cluster, 1, 2), 3) << "each tower has a thread";
  cluster.threads = 8;
  EXPECT_EQ(threads_of_worker(cluster, 1, 2), 8);
  EXPECT_EQ(devices_of(cluster, {TaskId::Role::kPs, 0}), "no device");
}

}  // namespace
}  // namespace paceline
