#include "kernels/sim/sim_device.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

namespace {

bool is_index(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// Outputs are zeroed if they hold indices, which must stay valid wherever they are used, or if they
// have at most this many bytes: a loss should be 0 rather than another value's bits.
constexpr std::size_t kClearedBytes = 1024;

void clear_what_is_looked_at(std::span<const TensorView> outputs) {
  for (const TensorView& output : outputs) {
    if (output.bytes() > 0 && (is_index(output.dtype) || output.bytes() <= kClearedBytes)) {
      std::memset(output.data, 0, output.bytes());
    }
  }
}

// Returns true for nodes on the path of ids, from a look-up's input to the rows that its gradient
// names.
bool makes_ids(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "sum_rows") return true;
  return (op == "reshape" || op == "concat") && node.outputs()[0].dtype == DType::kInt32;
}

// Clears the floats of a kernel that ran for its ids. Sums of floats that were never computed may
// hold denormal numbers, which slow rules down.
void clear_floats(std::span<const TensorView> outputs) {
  for (const TensorView& output : outputs) {
    if (!is_index(output.dtype) && output.bytes() > 0) std::memset(output.data, 0, output.bytes());
  }
}

class SimKernel : public Kernel {
 public:
  /// If `real` is null, the kernel only takes time.
  SimKernel(double flops, std::unique_ptr<Kernel> real, const DeviceOptions& options,
            std::shared_ptr<const SimPlan> plan, SimTimeline& timeline)
      : flops_(flops),
        real_(std::move(real)),
        options_(options),
        plan_(std::move(plan)),
        timeline_(timeline) {}

  std::size_t scratch_bytes() const override { return real_ ? real_->scratch_bytes() : 0; }

  void run(const KernelCall& call) override {
    if (real_) real_->run(call);
    if (real_ && !options_.sim_compute) clear_floats(call.outputs);
    if (!real_) clear_what_is_looked_at(call.outputs);
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
  const std::unique_ptr<Kernel> real_;
  const DeviceOptions& options_;
  const std::shared_ptr<const SimPlan> plan_;
  SimTimeline& timeline_;
};

}  // namespace

SimDevice::SimDevice(const DeviceOptions& options, Clock& clock, std::unique_ptr<Device> host)
    : options_(options),
      host_(std::move(host)),
      timeline_(clock),
      plan_(std::make_shared<SimPlan>()) {
  if (options.sim_step_ms > 0 || options.sim_gflops > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              "--device sim: needs --sim-step-ms or --sim-gflops above 0");
}

std::string SimDevice::name() const { return fmt::format("sim:{}", options_.index); }

void SimDevice::begin_plan(double total_flops) {
  plan_ = std::make_shared<SimPlan>(SimPlan{total_flops, 0});
}

// The host accesses this memory directly, so the device copies at once.
void SimDevice::upload(void* to, const void* from, std::size_t bytes) {
  host_->upload(to, from, bytes);
  take_time_to_copy(bytes);
}

void SimDevice::download(void* to, const void* from, std::size_t bytes) {
  host_->download(to, from, bytes);
  take_time_to_copy(bytes);
}

void SimDevice::take_time_to_copy(std::size_t bytes) {
  if (!copies()) return;
  const std::chrono::duration<double> time(double(bytes) / (options_.sim_copy_gbps * 1e9));
  const auto busy = std::chrono::duration_cast<Duration>(time);
  copied_ns_ += busy.count();
  timeline_.run(busy);
}

// The device's own queue runs in order, so it needs no wait.
void SimDevice::wait(const Event& event) {
  if (!timeline_.recorded(event)) event.synchronize();
}

std::unique_ptr<Kernel> SimDevice::make_kernel(const Node& node) {
  ++plan_->kernels;
  const bool computed = options_.sim_compute || makes_ids(node);
  return std::make_unique<SimKernel>(node.op().cost(node).flops,
                                     computed ? host_->make_kernel(node) : nullptr, options_, plan_,
                                     timeline_);
}

}  // namespace paceline
