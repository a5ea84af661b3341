#include "base/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"

namespace paceline {
namespace {

/// A /proc and a /sys/fs/cgroup of a test's own.
class ControlGroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path() + path).parent_path());
    std::ofstream(folder_.path() + path) << text;
  }
  ControlGroupLimits limits() const { return control_group_limits(folder_.path()); }

  const TemporaryFolder folder_;
};

const char* const kMountOfV2 =
    "36 35 0:31 / / rw - ext4 /dev/vda rw\n"
    "40 36 0:33 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(ControlGroup, OfV2TheSmallestOnTheWayToTheRootCounts) {
  write("/proc/self/mountinfo", kMountOfV2);
  write("/proc/self/cgroup", "0::/slice/job\n");
  write("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/slice/job/memory.max", "max\n");
  write("/sys/fs/cgroup/slice/memory.max", "262144000\n");
  write("/sys/fs/cgroup/slice/memory.current", "100000000\n");
  write("/sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file 40000000\nother 7\n");
  write("/sys/fs/cgroup/slice/memory.events", "low 0\noom 3\noom_kill 2\n");
  write("/sys/fs/cgroup/slice/job/pids.max", "12\n");
  write("/sys/fs/cgroup/slice/job/pids.current", "4\n");
  write("/sys/fs/cgroup/slice/pids.max", "100\n");
  const ControlGroupLimits found = limits();
  EXPECT_EQ(found.cores, 1.5);
  ASSERT_TRUE(found.memory && found.processes);
  EXPECT_EQ(found.memory->most, 262144000);
  EXPECT_EQ(found.memory->used, 60000000);
  EXPECT_EQ(found.memory->file, "/sys/fs/cgroup/slice/memory.max");
  EXPECT_EQ(found.killed_for_memory, 2);
  EXPECT_EQ(found.processes->most, 12);
  EXPECT_EQ(found.processes->used, 4);
}

TEST_F(ControlGroup, OfV1EachControllerHasItsHierarchy) {
  write("/proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 25 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
  write("/proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a\n2:pids:/\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n");
  write("/sys/fs/cgroup/pids/pids.max", "max\n");
  const ControlGroupLimits found = limits();
  EXPECT_EQ(found.cores, 0.5);
  ASSERT_TRUE(found.memory);
  EXPECT_EQ(found.memory->file, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes");
  EXPECT_FALSE(found.processes);
}

// A container may see its own group alone, as the root of the mount. The mount's line then names
// the group's path outside the container.
TEST_F(ControlGroup, AContainersOwnGroupIsItsRoot) {
  write("/proc/self/mountinfo",
        "40 36 0:33 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  write("/sys/fs/cgroup/sub/cpu.max", "100000 100000\n");
  write("/proc/self/cgroup", "0::/docker/x/sub\n");
  EXPECT_EQ(limits().cores, 1);
  write("/proc/self/cgroup", "0::/docker/x\n");
  EXPECT_EQ(limits().cores, 2);
  write("/proc/self/cgroup", "0::/../other\n");
  EXPECT_EQ(limits().cores, 2);
}

TEST_F(ControlGroup, WithoutThemNothingIsLimited) {
  EXPECT_FALSE(limits().cores || limits().memory || limits().processes);
  write("/proc/vmstat", "nr_free_pages 7\noom_kill 3\n");
  EXPECT_EQ(limits().killed_for_memory, 3);
  write("/proc/self/mountinfo", "nonsense\n1 2 3 - cgroup2\n");
  write("/proc/self/cgroup", "nonsense\n");
  EXPECT_FALSE(limits().cores || limits().memory || limits().processes);
}

}  // namespace
}  // namespace paceline
