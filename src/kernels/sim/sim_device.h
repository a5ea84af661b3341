// A device that only takes time: shapes and memory are real, nothing is computed but row ids, no
// core is used.
#pragma once

#include <memory>

#include "kernels/device.h"
#include "kernels/sim/sim_timeline.h"

namespace paceline {

/// The parts of one run of a plan.
struct SimPlan {
  double flops = 0;
  int kernels = 0;
};

class SimDevice : public Device {
 public:
  /// `host` computes ids: which rows a step needs and pushes must be as many as on a real device.
  SimDevice(const DeviceOptions& options, Clock& clock, std::unique_ptr<Device> host);

  std::string name() const override;
  std::unique_ptr<Kernel> make_kernel(const Node& node) override;
  Buffer allocate(std::size_t bytes) override { return Buffer(bytes); }
  ThreadPool& threads() override { return host_->threads(); }
  void begin_plan(double total_flops) override;
  Event record() override { return timeline_.record(); }
  void synchronize() override { timeline_.synchronize(); }

 private:
  const DeviceOptions options_;
  const std::unique_ptr<Device> host_;
  SimTimeline timeline_;
  std::shared_ptr<SimPlan> plan_;
};

}  // namespace paceline
