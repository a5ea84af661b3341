#include "kernels/sim/sim_device.h"

#include <fmt/format.h>

#include <cstring>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

namespace {

// Indices must stay valid wherever they travel, and a loss is better 0 than another value's bits.
constexpr std::size_t kClearedBytes = 1024;

void clear_what_is_looked_at(std::span<const TensorView> outputs) {
  for (const TensorView& output : outputs) {
    const bool index = output.dtype == DType::kInt32 || output.dtype == DType::kInt64;
    if (output.bytes() > 0 && (index || output.bytes() <= kClearedBytes)) {
      std::memset(output.data, 0, output.bytes());
    }
  }
}

class SimKernel : public Kernel {
 public:
  SimKernel(double flops, const DeviceOptions& options, std::shared_ptr<const SimPlan> plan,
            SimTimeline& timeline)
      : flops_(flops), options_(options), plan_(std::move(plan)), timeline_(timeline) {}

  void run(const KernelCall& call) override {
    clear_what_is_looked_at(call.outputs);
    timeline_.run(std::chrono::duration_cast<Duration>(time()));
  }

 private:
  std::chrono::duration<double> time() const {
    if (options_.sim_step_ms <= 0) {
      return std::chrono::duration<double>(flops_ / (options_.sim_gflops * 1e9));
    }
    const double share = plan_->flops > 0 ? flops_ / plan_->flops : 1.0 / plan_->kernels;
    return std::chrono::duration<double>(options_.sim_step_ms * 1e-3 * share);
  }

  const double flops_;
  const DeviceOptions& options_;
  const std::shared_ptr<const SimPlan> plan_;
  SimTimeline& timeline_;
};

}  // namespace

SimDevice::SimDevice(const DeviceOptions& options, Clock& clock)
    : options_(options), timeline_(clock), plan_(std::make_shared<SimPlan>()) {
  if (options.sim_step_ms > 0 || options.sim_gflops > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "--device sim: needs --sim-step-ms or --sim-gflops above 0");
}

std::string SimDevice::name() const { return fmt::format("sim:{}", options_.index); }

void SimDevice::begin_plan(double total_flops) {
  plan_ = std::make_shared<SimPlan>(SimPlan{total_flops, 0});
}

std::unique_ptr<Kernel> SimDevice::make_kernel(const Node& node) {
  ++plan_->kernels;
  return std::make_unique<SimKernel>(node.op().cost(node).flops, options_, plan_, timeline_);
}

}  // namespace paceline
