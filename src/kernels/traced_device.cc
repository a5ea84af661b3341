#include "kernels/traced_device.h"

#include <string>
#include <utility>

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

class TracedKernel : public Kernel {
 public:
  TracedKernel(std::unique_ptr<Kernel> kernel, Timeline& timeline, const Node& node)
      : kernel_(std::move(kernel)), timeline_(timeline), label_(timeline.label(label_of(node))) {}

  bool stream_output() override { return kernel_->stream_output(); }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  void run(const KernelCall& call) override {
    const TimelineScope scope(&timeline_, label_, bytes_of(call));
    kernel_->run(call);
  }

 private:
  static std::int64_t bytes_of(const KernelCall& call) {
    std::int64_t bytes = 0;
    for (const TensorView& input : call.inputs) bytes += std::int64_t(input.bytes());
    for (const TensorView& output : call.outputs) bytes += std::int64_t(output.bytes());
    return bytes;
  }

  const std::unique_ptr<Kernel> kernel_;
  Timeline& timeline_;
  const TimelineLabel* const label_;
};

class TracedDevice : public Device {
 public:
  TracedDevice(std::unique_ptr<Device> device, Timeline& timeline)
      : device_(std::move(device)), timeline_(timeline) {}

  std::string name() const override { return device_->name(); }
  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return std::make_unique<TracedKernel>(device_->make_kernel(node), timeline_, node);
  }
  Buffer allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  MemorySpace space() const override { return device_->space(); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    device_->upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    device_->download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    device_->copy(to, from, bytes);
  }
  Event record() override { return device_->record(); }
  void wait(const Event& event) override { device_->wait(event); }
  ThreadPool& threads() override { return device_->threads(); }
  void begin_plan(double total_flops) override { device_->begin_plan(total_flops); }
  void synchronize() override { device_->synchronize(); }

 private:
  const std::unique_ptr<Device> device_;
  Timeline& timeline_;
};

}  // namespace

std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline) {
  return std::make_unique<TracedDevice>(std::move(device), timeline);
}

}  // namespace paceline
