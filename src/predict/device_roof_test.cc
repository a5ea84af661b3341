// Tests the measurement of a device's roof, on a device whose times are known.
#include "predict/device_roof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/testing/error_of.h"
#include "kernels/device.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

using std::chrono::milliseconds, std::chrono::microseconds;

// A kernel takes 10 µs and the longer of its FLOPs at 2 GFLOP/s and its bytes at 4 GB/s; copies go
// at 8 GB/s to the device and at 5 GB/s back. All of it takes time only when somebody waits.
constexpr double kFlops = 2e9, kBytes = 4e9, kUp = 8e9, kDown = 5e9;
constexpr Duration kLaunch = microseconds(10);

Duration in_time(double seconds) { return Duration(std::int64_t(seconds * 1e9 + 0.5)); }

class TimedDevice : public Device {
 public:
  TimedDevice(ManualClock& clock, std::size_t memory) : clock_(clock), left_(memory) {}

  std::string name() const override { return "timed:0"; }
  std::string hardware() const override { return hardware_; }
  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return std::make_unique<TimedKernel>(node.op().cost(node), queued_);
  }
  Buffer allocate(std::size_t bytes) override {
    if (bytes > left_) throw Error(ErrorCode::kUnavailable, "its memory is full");
    return Buffer(bytes);
  }
  MemorySpace space() const override { return MemorySpace(this); }
  void upload(void*, const void*, std::size_t bytes) override {
    queued_ += in_time(double(bytes) / kUp);
  }
  void download(void*, const void*, std::size_t bytes) override {
    queued_ += in_time(double(bytes) / kDown);
  }
  ThreadPool& threads() override { return threads_; }
  void synchronize() override { clock_.advance(std::exchange(queued_, Duration(0))); }

  std::string hardware_ = "Timed 1";

 private:
  class TimedKernel : public Kernel {
   public:
    TimedKernel(Cost cost, Duration& queued) : cost_(cost), queued_(queued) {}
    void run(const KernelCall&) override {
      queued_ += kLaunch + in_time(std::max(cost_.flops / kFlops, cost_.bytes / kBytes));
    }

   private:
    const Cost cost_;
    Duration& queued_;
  };

  ManualClock& clock_;
  const std::size_t left_;
  Duration queued_{0};
  ThreadPool threads_{1};
};

DeviceRoof roof_of_timed(std::size_t memory, const std::string& hardware = "Timed 1") {
  ManualClock clock;
  TimedDevice device(clock, memory);
  device.hardware_ = hardware;
  return measure_device_roof(device, clock,
                             {.most_side = 512,
                              .most_elements = 1 << 20,
                              .most_launches = 64,
                              .most_bytes = std::size_t{16} << 20});
}

TEST(DeviceRoofTest, HasTheRatesOfTheDeviceInUnitsPerSecond) {
  const DeviceRoof roof = roof_of_timed(std::size_t{1} << 30);
  EXPECT_EQ(roof.name, "Timed 1");
  EXPECT_NEAR(roof.flops_per_s, kFlops, 0.01 * kFlops);
  EXPECT_NEAR(roof.bytes_per_s, kBytes, 0.01 * kBytes);
  EXPECT_NEAR(roof.launch_s, 10e-6, 0.01e-6);
  EXPECT_NEAR(roof.upload_bytes_per_s, kUp, 0.01 * kUp);
  EXPECT_NEAR(roof.download_bytes_per_s, kDown, 0.01 * kDown);
}

TEST(DeviceRoofTest, TakesTheSizesThatFitIntoTheMemory) {
  const DeviceRoof roof = roof_of_timed(std::size_t{4} << 20);
  EXPECT_NEAR(roof.flops_per_s, kFlops, 0.05 * kFlops);
  EXPECT_NEAR(roof.upload_bytes_per_s, kUp, 0.01 * kUp);
  EXPECT_EQ(error_of([] { roof_of_timed(1000); }), "its memory is full");
}

TEST(DeviceRoofTest, HasTheDevicesOwnNameIfNoDriverGivesOne) {
  EXPECT_EQ(roof_of_timed(std::size_t{1} << 30, "").name, "timed:0");
}

}  // namespace
}  // namespace paceline
