// A simulated device: its kernels only take time, but shapes and memory are real. Unless it is told
// to compute, it computes only the ids of rows, so it keeps no core busy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/device.h"
#include "kernels/sim/sim_timeline.h"

namespace paceline {

/// The FLOPs and the number of kernels of one run of a plan.
struct SimPlan {
  double flops = 0;
  int kernels = 0;
};

class SimDevice : public Device {
 public:
  /// `host` computes ids, since a step must need and push as many rows as on a real device. With
  /// DeviceOptions::sim_compute, `host` computes everything.
  SimDevice(const DeviceOptions& options, Clock& clock, std::unique_ptr<Device> host);

  std::string name() const override;
  std::unique_ptr<Kernel> make_kernel(const Node& node) override;
  Buffer allocate(std::size_t bytes) override { return Buffer(bytes); }
  MemorySpace space() const override { return copies() ? MemorySpace(this) : MemorySpace(); }
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  Duration copy_time() const override { return Duration(copied_ns_); }
  ThreadPool& threads() override { return host_->threads(); }
  void begin_plan(double total_flops) override;
  QueueClock* queue_clock() override { return &timeline_; }
  Event record() override { return timeline_.record(); }
  void wait(const Event& event) override;
  void synchronize() override { timeline_.synchronize(); }

 private:
  /// True if the device has its own memory, so that uploads and downloads take time.
  bool copies() const { return options_.sim_copy_gbps > 0; }
  void take_time_to_copy(std::size_t bytes);

  const DeviceOptions options_;
  const std::unique_ptr<Device> host_;
  SimTimeline timeline_;
  std::atomic<std::int64_t> copied_ns_{0};
  std::shared_ptr<SimPlan> plan_;
};

}  // namespace paceline
