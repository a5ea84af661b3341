// Measures the cores, memory and disk that this process uses.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "trace/pressure_counters.h"
#include "trace/stop_watch.h"

namespace paceline {

/// The causes that kept a process from working between two moments. A number is empty when the
/// system does not tell it.
struct Pressure {
  /// Of the time in which threads of the process could run, the share in which no core was free for
  /// them.
  std::optional<double> queued = {};
  /// The share of the time in which no core was free for the thread that called UseMeter::start.
  std::optional<double> waited = {};
  /// The average number of cores that all processes of the machine kept busy.
  std::optional<double> machine_cores = {};
  std::optional<double> major_faults = {};  // pages that were read from a disk, per second
  /// The shares of the time in which some process of the machine waited for memory, and for a disk.
  std::optional<double> memory_wait = {}, disk_wait = {};
  Stops stops = {};  // of this process

  bool operator==(const Pressure&) const = default;
};

/// What this process used between two moments. A number is empty when the system does not tell it.
struct MachineUse {
  double seconds = 0;  // between the two moments
  // The core time of all threads, including the time that the system spends for them.
  double core_seconds = 0;
  std::optional<std::int64_t> disk_read, disk_written;  // bytes that passed the system's cache
  std::optional<std::int64_t> peak_memory;              // bytes, since the process began
  Pressure pressure = {};
};

/// Any thread may use it.
class UseMeter {
 public:
  /// Begins to measure. Later calls do nothing.
  void start();
  /// Returns the use since start(); nothing before start().
  std::optional<MachineUse> measure() const;

 private:
  struct Counters {
    TimePoint time{};
    double core_seconds = 0;
    std::optional<std::int64_t> disk_read, disk_written;
    PressureCounters pressure;
    std::optional<double> waited;  // seconds of the thread that called start()
  };
  Counters count() const;
  Pressure pressure(const Counters& now, double seconds) const;

  mutable std::mutex mutex_;
  std::optional<Counters> begun_;
  std::int64_t thread_ = 0;                // that called start()
  std::unique_ptr<StopWatch> stop_watch_;  // from start() on
};

/// Returns the number that follows `key` in a text such as /proc/self/status; empty if the key is
/// missing.
std::optional<std::int64_t> number_behind(const std::string& text, const std::string& key);

}  // namespace paceline
