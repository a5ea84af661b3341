// A device that measures how long the kernels of each op take.
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

/// Adds up, by op, the time of the kernels that one thread runs between begin_step and end_step, in
/// the steps that the caller chooses.
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

  /// From now on, times the kernels that the calling thread runs.
  void begin_step() { timed_thread_ = std::this_thread::get_id(); }
  void end_step() {
    timed_thread_ = std::thread::id();
    ++steps_;
  }
  /// The number of timed steps.
  std::int64_t steps() const { return steps_; }
  /// Returns the time of each op of which a kernel ran, the longest first.
  std::vector<OpTime> times() const;

  // The device and its kernels call the functions below.
  bool times_this_thread() const { return timed_thread_ == std::this_thread::get_id(); }
  const Clock& clock() const { return clock_; }
  /// Returns the counter of an op. The reference is valid as long as the meter.
  Counter& counter(const std::string& op);

 private:
  const Clock& clock_;
  std::atomic<std::thread::id> timed_thread_{};
  std::atomic<std::int64_t> steps_{0};
  mutable std::mutex mutex_;
  std::deque<Counter> counters_;
};

/// Wraps `device` so that `meter`, which must outlive the device and its kernels, times the
/// kernels. In steps that are not timed, each kernel costs one comparison more. On a device with
/// its own queue, the measured time is that of queueing.
std::unique_ptr<Device> make_metered_device(std::unique_ptr<Device> device, KernelMeter& meter);

}  // namespace paceline
