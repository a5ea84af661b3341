// The wrapper is always in place, and the train loop times one step in 16. In all other steps the
// meter costs one comparison for each kernel.
#include "kernels/metered_device.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/forwarding_device.h"
#include "paceline/op.h"

namespace paceline {
namespace {

class MeteredKernel : public ForwardingKernel {
 public:
  MeteredKernel(std::unique_ptr<Kernel> kernel, const KernelMeter& meter,
                KernelMeter::Counter& counter)
      : ForwardingKernel(std::move(kernel)), meter_(meter), counter_(counter) {}

  void run(const KernelCall& call) override {
    if (!meter_.times_this_thread()) return ForwardingKernel::run(call);
    const TimePoint began = meter_.clock().now();
    ForwardingKernel::run(call);
    counter_.nanoseconds += (meter_.clock().now() - began).count();
    ++counter_.runs;
  }

 private:
  const KernelMeter& meter_;
  KernelMeter::Counter& counter_;
};

class MeteredDevice : public ForwardingDevice {
 public:
  MeteredDevice(std::unique_ptr<Device> device, KernelMeter& meter)
      : ForwardingDevice(std::move(device)), meter_(meter) {}

  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return std::make_unique<MeteredKernel>(ForwardingDevice::make_kernel(node), meter_,
                                           meter_.counter(node.op().name));
  }

 private:
  KernelMeter& meter_;
};

}  // namespace

KernelMeter::Counter& KernelMeter::counter(const std::string& op) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(counters_, op, &Counter::op);
  if (found != counters_.end()) return *found;
  Counter& made = counters_.emplace_back();
  made.op = op;
  return made;
}

std::vector<KernelMeter::OpTime> KernelMeter::times() const {
  std::vector<OpTime> times;
  {
    const std::lock_guard lock(mutex_);
    for (const Counter& each : counters_) {
      if (each.runs > 0) times.push_back({each.op, each.runs, Duration(each.nanoseconds)});
    }
  }
  std::ranges::sort(times, std::ranges::greater(), &OpTime::time);
  return times;
}

std::unique_ptr<Device> make_metered_device(std::unique_ptr<Device> device, KernelMeter& meter) {
  return std::make_unique<MeteredDevice>(std::move(device), meter);
}

}  // namespace paceline
