// The system's counters of causes that keep a process from working.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace paceline {

/// Sums since the process or the machine began. What the system does not tell is empty.
struct PressureCounters {
  // The seconds for which the present threads of this process ran on a core, and waited for a free
  // one.
  std::optional<double> ran, queued;
  std::optional<double> machine_ran;         // core-seconds of all processes of the machine
  std::optional<std::int64_t> major_faults;  // pages that were read from a disk, of this process
  // Seconds in which some process of the machine waited for memory, and for a disk.
  std::optional<double> memory_wait, disk_wait;
};

/// Reads them from /proc, in a tenth of a millisecond.
PressureCounters read_pressure_counters();
/// Reads the seconds that a thread of this process has waited for a free core so far; nothing when
/// the system does not tell, or when the thread has ended.
std::optional<double> queued_seconds(std::int64_t thread);
std::int64_t calling_thread();

/// Of the time between two readings in which the threads of this process could run, the share in
/// which other programs had the cores; nothing when the system does not tell. Threads that have
/// ended meanwhile take their time with them.
std::optional<double> queued_share(const PressureCounters& before, const PressureCounters& after);

/// Returns the ticks in which a core was busy with a process of this machine, from a line of
/// /proc/stat such as "cpu  10 1 5 200 …".
std::optional<std::int64_t> busy_ticks(const std::string& stat);
/// Returns the seconds of "some" in a text such as /proc/pressure/memory.
std::optional<double> stalled_seconds(const std::string& pressure);

}  // namespace paceline
