// A device: memory and kernels. Code outside kernels/ does not know which device it uses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/copy_bytes.h"
#include "base/memory_space.h"
#include "base/thread_pool.h"
#include "kernels/event.h"
#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

struct DeviceOptions {
  std::string kind = "cpu";  // a name of the table in device.cc
  int index = 0;
  int threads = 1;
  double sim_step_ms = 0;  // sim: ms of one run of a plan, spread over its ops by FLOPs
  double sim_gflops = 0;   // sim: the rate at which it computes FLOPs if sim_step_ms is 0
  /// sim: the GB/s of copies to and from the device's own memory; 0: the device shares the host's
  /// memory.
  double sim_copy_gbps = 0;
  bool sim_compute = false;         // sim: kernels also compute, on this machine's cores
  bool cuda_check = false;          // cuda: the host waits after each kernel
  bool cuda_tf32 = false;           // cuda: multiplies float32 in TF32
  bool cuda_deterministic = false;  // cuda: uses only deterministic kernels
};

/// Tells when a device that works behind the host got to places in its queue. For any thread.
class QueueClock {
 public:
  virtual ~QueueClock() = default;
  static constexpr std::int64_t kLost = -1;  // the number of a mark that could not be made
  /// The time of a mark to which the device will not get, such as kLost.
  static constexpr TimePoint kNever = TimePoint::max();
  /// Marks the end of what is queued so far. Returns the number of the mark.
  virtual std::int64_t mark() = 0;
  /// Returns when the device got to the mark, by the host's steady clock, and forgets the mark.
  /// Returns nothing while the device has not got there.
  virtual std::optional<TimePoint> take(std::int64_t mark) = 0;
};

/// Kernels and copies run in the order of their calls, and the host may be ahead of them. A device
/// that computes on the host runs each of them before the call returns.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu:0"
  /// The name of the hardware, as its driver gives it, such as "NVIDIA H200"; empty if there is no
  /// driver.
  virtual std::string hardware() const { return ""; }
  /// Makes the kernel of a node. The device keeps what its kernels share, such as threads, and must
  /// outlive them. Throws kNotFound "[op] has no kernel on cpu for float16" if there is no kernel.
  virtual std::unique_ptr<Kernel> make_kernel(const Node& node) = 0;
  /// Returns zero-filled memory in space() for kernels to read and write. The device must outlive
  /// it.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// The space of the device's memory. All memory that a kernel reads or writes must lie there.
  virtual MemorySpace space() const { return {}; }
  /// Copies from the host's memory at `from`, which must not change until the copy is made.
  virtual void upload(void* to, const void* from, std::size_t bytes) {
    copy_bytes(to, from, bytes);
  }
  /// Copies to the host's memory at `to`, which nobody may use until the copy is made.
  virtual void download(void* to, const void* from, std::size_t bytes) {
    copy_bytes(to, from, bytes);
  }
  /// The time for which copies from and to the host's memory have kept the device busy so far; 0
  /// for a device that cannot tell. Any thread may ask.
  virtual Duration copy_time() const { return Duration(0); }
  /// The time in which the host has computed ops that the device has no kernels for, including
  /// copies there and back.
  virtual Duration host_op_time() const { return Duration(0); }
  /// How many kernels the host has launched on the device so far; 0 for a device whose kernels are
  /// not launched. Any thread may ask.
  virtual std::int64_t launches() const { return 0; }
  /// Copies within the device's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) { copy_bytes(to, from, bytes); }
  /// Returns the clock of the device's queue; null if the device computes on the host, or cannot
  /// tell.
  virtual QueueClock* queue_clock() { return nullptr; }
  /// Returns an event that happens when everything called so far is done.
  virtual Event record() { return {}; }
  /// Kernels and copies called from now on run after the event, which may be of another device.
  virtual void wait(const Event& event) { event.synchronize(); }
  /// The device's threads on this machine's cores, for other work of a step between two kernels.
  virtual ThreadPool& threads() = 0;
  /// Returns sentences about kernels that are slower than they could be, with remedies. For
  /// example, they name ops that the host computes because the device has no kernel for them.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Called once per plan, before its kernels are made, with the FLOPs of one run.
  virtual void begin_plan(double /*total_flops*/) {}
  /// Returns when everything called so far is done. Throws what a kernel threw meanwhile.
  virtual void synchronize() {}
};

/// Throws kInvalidArgument naming --device and the allowed values. `clock` must outlive the device.
std::unique_ptr<Device> make_device(const DeviceOptions& options, Clock& clock);

}  // namespace paceline
