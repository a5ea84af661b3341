#include "bench/joining_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/temporary_folder.h"
#include "bench/train_run.h"
#include "cluster/launch/held_ports.h"
#include "summary/event_folder.h"

namespace paceline::bench {
namespace {

std::vector<std::vector<std::string>> tasks_of(const ReportRow& row,
                                               const std::vector<std::string>& addresses,
                                               const std::string& folder) {
  const int starts_apart = (row.workers - 1) * row.workers / 2 + 2 * row.workers;  // of all workers
  const double worker_seconds = starts_apart * row.apart_s;
  const std::string of_workers =
      fmt::format("{}", fmt::join(addresses.begin() + 1, addresses.end(), ","));
  std::vector<std::vector<std::string>> tasks;
  for (int task = 0; task <= row.workers; ++task) {
    tasks.push_back({"train", row.report, "--device", "sim", "--sim-step-ms",
                     fmt::format("{}", row.device_ms), "--threads", "1", "--steps",
                     fmt::format("{:.0f}", worker_seconds * 1000 / row.device_ms), "--out", folder,
                     "--summary-every", "1s", "--cluster",
                     fmt::format("ps={};worker={}", addresses[0], of_workers), "--task",
                     task == 0 ? "ps:0" : fmt::format("worker:{}", task - 1)});
  }
  return tasks;
}

// Returns the speed of each worker over the seconds since the first one's first summary.
std::vector<Series> speeds_over_time(const std::string& folder) {
  std::vector<Series> all;
  double begin = std::numeric_limits<double>::infinity();
  for (const TaskSummaries& task : read_summaries(folder)) {
    const auto speeds = task.numbers.find("speed/steps_per_s");
    if (!task.task.starts_with("worker") || speeds == task.numbers.end()) continue;
    Series& series = all.emplace_back(Series{task.task, {}});
    for (const SummaryPoint& point : speeds->second) {
      series.points.emplace_back(point.wall_time, point.value);
      begin = std::min(begin, point.wall_time);
    }
  }
  for (Series& series : all) {
    for (auto& point : series.points) point.first -= begin;
  }
  return all;
}

}  // namespace

ReportSpeed run_joining(const ReportRow& row) {
  const TemporaryFolder folder;
  const HeldPorts ports(row.workers + 1);
  const Report report = run_tasks(tasks_of(row, ports.addresses(), folder.path()),
                                  std::chrono::milliseconds(std::int64_t(row.apart_s * 1000)));
  double least = std::numeric_limits<double>::infinity();
  for (const TaskReport& task : report.tasks) {
    if (task.task.starts_with("worker")) least = std::min(least, task.steps_per_s.value_or(0));
  }
  return {least, speeds_over_time(folder.path())};
}

}  // namespace paceline::bench
