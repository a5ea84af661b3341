// Base classes for layers around a device and its kernels. They only forward calls.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device.h"

namespace paceline {

/// Forwards every call to another device, which it owns.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  std::string hardware() const override { return device_->hardware(); }
  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return device_->make_kernel(node);
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
  Duration copy_time() const override { return device_->copy_time(); }
  Duration host_op_time() const override { return device_->host_op_time(); }
  std::int64_t launches() const override { return device_->launches(); }
  QueueClock* queue_clock() override { return device_->queue_clock(); }
  Event record() override { return device_->record(); }
  void wait(const Event& event) override { device_->wait(event); }
  ThreadPool& threads() override { return device_->threads(); }
  std::vector<std::string> remarks() const override { return device_->remarks(); }
  void begin_plan(double total_flops) override { device_->begin_plan(total_flops); }
  void synchronize() override { device_->synchronize(); }

 private:
  const std::unique_ptr<Device> device_;
};

/// Forwards every call to another kernel, which it owns.
class ForwardingKernel : public Kernel {
 public:
  explicit ForwardingKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  bool stream_output() override { return kernel_->stream_output(); }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  void run(const KernelCall& call) override { kernel_->run(call); }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace paceline
