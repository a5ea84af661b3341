// A device: memory and kernels. Nothing outside kernels/ knows which one it has.
#pragma once

#include <memory>
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
  double sim_step_ms = 0;  // sim: what one run of a plan takes, spread over its ops by FLOPs
  double sim_gflops = 0;   // sim: else FLOPs at this rate
  /// sim: it has memory of its own, and copies to and from it take this rate; 0: it shares the
  /// host's memory.
  double sim_copy_gbps = 0;
  bool sim_compute = false;         // sim: kernels also compute, on this machine's cores
  bool cuda_check = false;          // cuda: the host waits behind each kernel
  bool cuda_tf32 = false;           // cuda: float32 is multiplied in TF32
  bool cuda_deterministic = false;  // cuda: only kernels that give the same bits again
};

/// Kernels and copies run in the order in which they are called; the host may be ahead of them. A
/// device that computes on the host runs each before the call returns.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;  // "cpu:0"
  /// The device keeps what kernels share (threads); it must outlive its kernels.
  /// Throws kNotFound "[op] has no kernel on cpu for float16" when there is none.
  virtual std::unique_ptr<Kernel> make_kernel(const Node& node) = 0;
  /// Zero-filled memory of space(), which kernels read and write. The device must outlive it.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// The memory that it lies in. Whatever a kernel reads or writes must lie there.
  virtual MemorySpace space() const { return {}; }
  /// Copies from the host's memory, which must stay as it is until the copy was made.
  virtual void upload(void* to, const void* from, std::size_t bytes) {
    copy_bytes(to, from, bytes);
  }
  /// Copies to the host's memory, which nobody may touch until the copy was made.
  virtual void download(void* to, const void* from, std::size_t bytes) {
    copy_bytes(to, from, bytes);
  }
  /// How long copies from and to the host's memory have kept the device busy so far; 0 for a device
  /// that cannot tell. Any thread.
  virtual Duration copy_time() const { return Duration(0); }
  /// For how long the host has computed ops that the device has no kernels for, with the copies
  /// there and back.
  virtual Duration host_op_time() const { return Duration(0); }
  /// Copies within the device's memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) { copy_bytes(to, from, bytes); }
  /// Happens when all that was called so far is done.
  virtual Event record() { return {}; }
  /// All that is called from now on runs after the event, which may be of another device.
  virtual void wait(const Event& event) { event.synchronize(); }
  /// Its threads on this machine's cores, for other work of a step between two kernels.
  virtual ThreadPool& threads() = 0;
  /// Sentences about kernels that were made and are slower than they could be, with what to do:
  /// such as ops that it has no kernels for, which the host computes.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// Told once per plan, before its kernels are made: what one run of it costs in all.
  virtual void begin_plan(double /*total_flops*/) {}
  /// Returns when all that was called so far is done. Throws what a kernel threw in the meantime.
  virtual void synchronize() {}
};

/// Throws kInvalidArgument naming --device and what is allowed. `clock` must outlive the device.
std::unique_ptr<Device> make_device(const DeviceOptions& options, Clock& clock);

}  // namespace paceline
