// Computes a task's use of its machine, as its report shows it.
#include <fmt/format.h>

#include <vector>

#include "run/report/report.h"

namespace paceline {
namespace {

constexpr double kMegabyte = 1e6;

std::optional<double> per_second(std::optional<std::int64_t> bytes, double seconds) {
  if (!bytes) return std::nullopt;
  return double(*bytes) / seconds;
}

std::string rates_text(const char* what, std::optional<double> in, const char* in_word,
                       std::optional<double> out, const char* out_word) {
  if (!in || !out) return "";
  return fmt::format("{} {:.1f} MB/s {} {:.1f} {}", what, *in / kMegabyte, in_word,
                     *out / kMegabyte, out_word);
}

}  // namespace

TaskUse task_use(const std::optional<MachineUse>& use, std::int64_t sent, std::int64_t received) {
  TaskUse task;
  if (!use || use->seconds <= 0) return task;
  task.seconds = use->seconds;
  task.pressure = use->pressure;
  task.cores = use->core_seconds / use->seconds;
  task.sent = double(sent) / use->seconds;
  task.received = double(received) / use->seconds;
  task.disk_read = per_second(use->disk_read, use->seconds);
  task.disk_written = per_second(use->disk_written, use->seconds);
  if (use->peak_memory) task.peak_memory = double(*use->peak_memory);
  return task;
}

std::string TaskUse::text() const {
  std::vector<std::string> parts;
  if (cores) parts.push_back(fmt::format("{:.2f} cores", *cores));
  if (device_busy) parts.push_back(fmt::format("device busy {:.0f}%", 100 * *device_busy));
  parts.push_back(rates_text("network", received, "in", sent, "out"));
  parts.push_back(rates_text("disk", disk_read, "read", disk_written, "written"));
  if (peak_memory) parts.push_back(fmt::format("peak memory {:.0f} MB", *peak_memory / kMegabyte));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace paceline
