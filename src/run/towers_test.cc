#include "run/towers.h"

#include <gmock/gmock.h>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

std::string refusal(const Cluster& cluster, int cores) {
  return error_of(ErrorCode::kUsage, [&] { check_towers(cluster, cores); });
}

TEST(Towers, OnCpuEachHasACoreOfItsOwn) {
  Cluster cluster;
  cluster.towers = 4;
  check_towers(cluster, 4);
  EXPECT_EQ(refusal(cluster, 3),
            "--towers 4: this machine has 3 cores, and each tower on cpu needs one of its own");
  EXPECT_THAT(refusal(cluster, 1), testing::HasSubstr("has 1 core,"));
  cluster.threads = 4;
  check_towers(cluster, 4);
  cluster.threads = 3;
  EXPECT_EQ(refusal(cluster, 4),
            "--towers 4: --threads 3 are shared by the towers, and each needs one");
}

TEST(Towers, OnSimNeedNoCore) {
  Cluster cluster;
  cluster.device.kind = "sim";
  cluster.towers = kMostTowers;
  cluster.threads = 1;
  check_towers(cluster, 1);
  for (const int towers : {0, kMostTowers + 1}) {
    cluster.towers = towers;
    EXPECT_THAT(refusal(cluster, 1000), testing::HasSubstr("must be a whole number from 1 to 64"));
  }
}

}  // namespace
}  // namespace paceline
