// The system's counters of causes that keep a process from working.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline {

/// Sums since the process or the machine began. A counter that the system does not tell is empty.
struct PressureCounters {
  // The seconds for which the present threads of this process ran on a core, and waited for a free
  // one.
  std::optional<double> ran, queued;
  std::optional<double> machine_ran;         // core-seconds of all processes of the machine
  std::optional<std::int64_t> major_faults;  // pages that this process had to read from a disk
  // Seconds in which some process of the machine waited for memory, and for a disk.
  std::optional<double> memory_wait, disk_wait;
};

/// Reads the counters from /proc, which takes a tenth of a millisecond.
PressureCounters read_pressure_counters();
/// Returns the seconds for which a thread of this process has waited for a free core so far;
/// nothing if the system does not tell, or if the thread has ended.
std::optional<double> queued_seconds(std::int64_t thread);
std::int64_t calling_thread();

/// Of the time in which threads of this process could run between two readings, returns the share
/// in which they waited for a free core; nothing if the system does not tell. The time of threads
/// that have ended in between is missing.
std::optional<double> queued_share(const PressureCounters& before, const PressureCounters& after);

/// Returns the ticks for which a core was busy with a process of this machine, from a line of
/// /proc/stat such as "cpu  10 1 5 200 …".
std::optional<std::int64_t> busy_ticks(const std::string& stat);
/// Returns the seconds of the line "some" in a text such as that of /proc/pressure/memory.
std::optional<double> stalled_seconds(const std::string& pressure);

}  // namespace paceline
