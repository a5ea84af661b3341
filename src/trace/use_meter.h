// Measures the cores, memory and disk that this process uses.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"

namespace paceline {

/// Between two moments. What the system does not tell is empty.
struct MachineUse {
  double seconds = 0;       // between them
  double core_seconds = 0;  // of all threads, in the process and in the system for it
  std::optional<std::int64_t> disk_read, disk_written;  // bytes, beyond the system's cache
  std::optional<std::int64_t> peak_memory;              // bytes, since the process began
};

/// Any thread.
class UseMeter {
 public:
  /// Measures from now on, at the first call.
  void start();
  /// Until now; nothing before start().
  std::optional<MachineUse> measure() const;

 private:
  struct Counters {
    TimePoint time{};
    double core_seconds = 0;
    std::optional<std::int64_t> disk_read, disk_written;
  };
  static Counters count();

  mutable std::mutex mutex_;
  std::optional<Counters> begun_;
};

/// The number behind `key` in text such as that of /proc/self/status; none when there is none.
std::optional<std::int64_t> number_behind(const std::string& text, const std::string& key);

}  // namespace paceline
