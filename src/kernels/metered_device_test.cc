#include "kernels/metered_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "paceline/graph.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

/// A device whose kernels only advance the clock.
class ClockDevice : public Device {
 public:
  ClockDevice(ManualClock& clock, Duration takes)
      : clock_(clock), takes_(takes), cpu_(make_device({}, clock)) {}
  std::string name() const override { return "clock:0"; }
  std::unique_ptr<Kernel> make_kernel(const Node&) override {
    struct Turns : Kernel {
      Turns(ManualClock& clock, Duration takes) : clock_(clock), takes_(takes) {}
      void run(const KernelCall&) override { clock_.advance(takes_); }
      ManualClock& clock_;
      const Duration takes_;
    };
    return std::make_unique<Turns>(clock_, takes_ += 1ms);
  }
  Buffer allocate(std::size_t bytes) override { return cpu_->allocate(bytes); }
  ThreadPool& threads() override { return cpu_->threads(); }

 private:
  ManualClock& clock_;
  Duration takes_;
  const std::unique_ptr<Device> cpu_;
};

class KernelMeterTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernel> kernel(Value value) { return device_->make_kernel(value.node()); }

  ManualClock clock_;
  KernelMeter meter_{clock_};
  // The first kernel takes 1 ms, the second 2 ms, and the third 3 ms.
  const std::unique_ptr<Device> device_ =
      make_metered_device(std::make_unique<ClockDevice>(clock_, 0ms), meter_);
  Graph graph_;
  const Value x_ = graph_.input("x", {2});
};

TEST_F(KernelMeterTest, TheTimeOfTheKernelsOfAnOpIsAddedUp) {
  const auto first = kernel(tanh(x_)), second = kernel(exp(x_)), third = kernel(tanh(exp(x_)));
  for (int step = 0; step < 2; ++step) {
    meter_.begin_step();
    for (Kernel* each : {first.get(), second.get(), third.get()}) each->run({});
    meter_.end_step();
  }
  EXPECT_EQ(meter_.steps(), 2);
  const std::vector<KernelMeter::OpTime> times = meter_.times();
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].op, "tanh");
  EXPECT_EQ(times[0].runs, 4);
  EXPECT_EQ(times[0].time, 8ms);
  EXPECT_EQ(times[1].op, "exp");
  EXPECT_EQ(times[1].time, 4ms);
}

TEST_F(KernelMeterTest, StepsThatAreNotTimedAndOtherThreadsAreLeftOut) {
  const auto only = kernel(tanh(x_));
  only->run({});
  meter_.begin_step();
  std::thread([&] { only->run({}); }).join();
  meter_.end_step();
  only->run({});
  EXPECT_THAT(meter_.times(), IsEmpty());
}

}  // namespace
}  // namespace paceline
