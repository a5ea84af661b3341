#include "trace/use_meter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace paceline {
namespace {

TEST(UseMeter, MeasuresFromItsStart) {
  UseMeter meter;
  EXPECT_FALSE(meter.measure().has_value());
  meter.start();
  // Computes until the system has counted some processor time.
  volatile double sum = 0;
  while (meter.measure()->core_seconds <= 0) {
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  }
  const MachineUse use = *meter.measure();
  EXPECT_GT(use.seconds, 0);
  meter.start();  // does nothing
  EXPECT_GE(meter.measure()->core_seconds, use.core_seconds);
}

TEST(UseMeter, KnowsThePeakOfMemory) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  UseMeter meter;
  meter.start();
  {
    std::vector<char> memory(kBytes);
    std::memset(memory.data(), 1, memory.size());
  }
  ASSERT_TRUE(meter.measure()->peak_memory.has_value());
  EXPECT_GE(*meter.measure()->peak_memory, std::int64_t(kBytes));
}

TEST(UseMeter, ReadsWhatTheSystemWrites) {
  const std::string io = "rchar: 10\nread_bytes: 4096\ncancelled_write_bytes: 7\nwrite_bytes: 8\n";
  EXPECT_EQ(number_behind(io, "rchar:"), 10);
  EXPECT_EQ(number_behind(io, "read_bytes:"), 4096);
  EXPECT_EQ(number_behind(io, "write_bytes:"), 8);
  EXPECT_EQ(number_behind("VmPeak:\t 9 kB\nVmHWM:\t  1234 kB\n", "VmHWM:"), 1234);
  EXPECT_FALSE(number_behind(io, "VmHWM:").has_value());
  EXPECT_FALSE(number_behind("VmHWM:", "VmHWM:").has_value());
  EXPECT_FALSE(number_behind("VmHWM: x", "VmHWM:").has_value());
}

}  // namespace
}  // namespace paceline
