// A device that knows how long the kernels of each op take.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "kernels/device.h"

namespace paceline {

/// Adds up, by op, the time of the kernels that one thread runs between begin_step and end_step: in
/// the steps that are chosen to be timed.
class KernelMeter {
 public:
  struct OpTime {
    std::string op;
    std::int64_t runs = 0;
    Duration time{0};
  };
  struct Counter {
    std::string op;
    std::atomic<std::int64_t> runs{0}, nanoseconds{0};
  };

  explicit KernelMeter(const Clock& clock) : clock_(clock) {}

  /// From now on the kernels that the calling thread runs are timed.
  void begin_step() { timed_thread_ = std::this_thread::get_id(); }
  void end_step() {
    timed_thread_ = std::thread::id();
    ++steps_;
  }
  /// How many steps were timed.
  std::int64_t steps() const { return steps_; }
  /// Returns the time of each op of which a kernel ran; the one that took longest comes first.
  std::vector<OpTime> times() const;

  // Calls of the device and its kernels.
  bool times_this_thread() const { return timed_thread_ == std::this_thread::get_id(); }
  const Clock& clock() const { return clock_; }
  /// Valid as long as the meter.
  Counter& counter(const std::string& op);

 private:
  const Clock& clock_;
  std::atomic<std::thread::id> timed_thread_{};
  std::atomic<std::int64_t> steps_{0};
  mutable std::mutex mutex_;
  std::deque<Counter> counters_;
};

/// Makes a device that does what `device` does, and whose kernels are timed by `meter`, which must
/// outlive the device and its kernels. Other steps cost a comparison for each kernel. On a device
/// with a queue of its own the time is that of queueing.
std::unique_ptr<Device> make_metered_device(std::unique_ptr<Device> device, KernelMeter& meter);

}  // namespace paceline
