// The use of its machine by one task, as reports show it.
#pragma once

#include <optional>
#include <string>

#include "trace/use_meter.h"

namespace paceline {

/// The member "use" of a task's report (docs/report.md). A number that was not measured is empty.
struct TaskUse {
  std::optional<double> cores;                    // that computed, on average
  std::optional<double> device_busy;              // share of the time; a worker's
  std::optional<double> sent, received;           // over links, bytes/s
  std::optional<double> disk_read, disk_written;  // bytes/s
  std::optional<double> peak_memory;              // bytes
  double seconds = 0;                             // over which it was measured; 0: it was not
  Pressure pressure = {};                         // what kept it from working

  bool operator==(const TaskUse&) const = default;
  /// "1.93 cores, device busy 98%, network 1.2 MB/s out 3.4 in, …".
  std::string text() const;
};

/// `sent` and `received`: bytes within that time. Empty when `use` is.
TaskUse task_use(const std::optional<MachineUse>& use, std::int64_t sent, std::int64_t received);

}  // namespace paceline
