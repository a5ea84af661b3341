// A device: memory and kernels. Nothing outside kernels/ knows which one it has.
#pragma once

#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "paceline/graph.h"
#include "paceline/kernel.h"

namespace paceline {

struct DeviceOptions {
  std::string kind = "cpu";  // "cpu", "sim", "naive" (the oracle)
  int index = 0;
  int threads = 1;
  double sim_step_ms = 0;  // sim: what one run of a plan takes, spread over its ops by FLOPs
  double sim_gflops = 0;   // sim: else FLOPs at this rate
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu:0"
  /// The device keeps what kernels share (threads); it must outlive its kernels.
  /// Throws kNotFound "[op] has no kernel on cpu for float16" when there is none.
  virtual std::unique_ptr<Kernel> make_kernel(const Node& node) = 0;
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Its threads on this machine's cores, for other work of a step between two kernels.
  virtual ThreadPool& threads() = 0;
  /// Told once per plan, before its kernels are made: what one run of it costs in all.
  virtual void begin_plan(double /*total_flops*/) {}
  /// Returns when every kernel run so far has finished; called where its results leave the device.
  virtual void synchronize() {}
};

/// Throws kInvalidArgument naming --device and what is allowed. `clock` must outlive the device.
std::unique_ptr<Device> make_device(const DeviceOptions& options, Clock& clock);

}  // namespace paceline
