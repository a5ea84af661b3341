#include "kernels/traced_device.h"

#include <string>
#include <utility>

#include "kernels/forwarding_device.h"
#include "paceline/op.h"

namespace paceline {
namespace {

TimelineLabel label_of(const Node& node) {
  std::string inputs, outputs;
  for (const Value& input : node.inputs()) {
    inputs += (inputs.empty() ? "" : ", ") + input.type().str();
  }
  for (const ValueType& output : node.outputs()) {
    outputs += (outputs.empty() ? "" : ", ") + output.str();
  }
  return {
      node.op().name, "kernel", {{"node", node.name()}, {"inputs", inputs}, {"outputs", outputs}}};
}

class TracedKernel : public ForwardingKernel {
 public:
  TracedKernel(std::unique_ptr<Kernel> kernel, Timeline& timeline, const Node& node)
      : ForwardingKernel(std::move(kernel)),
        timeline_(timeline),
        label_(timeline.label(label_of(node))) {}

  void run(const KernelCall& call) override {
    const TimelineScope scope(&timeline_, label_, bytes_of(call));
    ForwardingKernel::run(call);
  }

 private:
  static std::int64_t bytes_of(const KernelCall& call) {
    std::int64_t bytes = 0;
    for (const TensorView& input : call.inputs) bytes += std::int64_t(input.bytes());
    for (const TensorView& output : call.outputs) bytes += std::int64_t(output.bytes());
    return bytes;
  }

  Timeline& timeline_;
  const TimelineLabel* const label_;
};

class TracedDevice : public ForwardingDevice {
 public:
  TracedDevice(std::unique_ptr<Device> device, Timeline& timeline)
      : ForwardingDevice(std::move(device)), timeline_(timeline) {}

  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return std::make_unique<TracedKernel>(ForwardingDevice::make_kernel(node), timeline_, node);
  }

 private:
  Timeline& timeline_;
};

}  // namespace

std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline) {
  return std::make_unique<TracedDevice>(std::move(device), timeline);
}

}  // namespace paceline
