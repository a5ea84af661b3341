#include "evidence/joining_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/temporary_folder.h"
#include "bench/train_run.h"
#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "net/held_ports.h"
#include "net/tls/secret_key.h"
#include "summary/event_folder.h"

namespace paceline::bench {
namespace {

constexpr int kSummaryEvery = 1;  // seconds between summaries
const std::string kKey = "job.key";

std::vector<std::vector<std::string>> tasks_of(const ReportRow& row,
                                               const std::vector<std::string>& addresses,
                                               const std::string& folder) {
  const int starts_apart =
      // The time for which all workers together train, counted in intervals between two starts.
      (row.workers - 1) * row.workers / 2 + 2 * row.workers;
  const double worker_seconds = starts_apart * row.apart_s;
  const std::string of_workers =
      fmt::format("{}", fmt::join(addresses.begin() + 1, addresses.end(), ","));
  std::vector<std::vector<std::string>> tasks;
  // Tasks on hosts of a lab get a key: without a key, the ps would warn that it listens on a
  // network.
  for (int task = 0; task <= row.workers; ++task) {
    tasks.push_back(
        {"train",           row.report,
         "--device",        "sim",
         "--sim-step-ms",   fmt::format("{}", row.device_ms),
         "--threads",       "1",
         "--steps",         fmt::format("{:.0f}", worker_seconds * 1000 / row.device_ms),
         "--out",           folder,
         "--summary-every", fmt::format("{}s", kSummaryEvery),
         "--cluster",       fmt::format("ps={};worker={}", addresses[0], of_workers),
         "--task",          task == 0 ? "ps:0" : fmt::format("worker:{}", task - 1),
         "--log-level",     "error"});
    if (row.gbps > 0)
      tasks.back().insert(tasks.back().end(), {"--key-file", fmt::format("{}/{}", folder, kKey)});
  }
  return tasks;
}

// Returns the speed of each worker, over the seconds since the first one began.
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
    for (auto& point : series.points) point.first -= begin - kSummaryEvery;
  }
  return all;
}

// A worker's first summary covers the interval before it, in which the worker began.
double begin_of(const Series& worker) { return worker.points.front().first - kSummaryEvery; }

std::size_t training_at(const std::vector<Series>& workers, double time) {
  return std::size_t(std::ranges::count_if(
      workers, [&](const Series& worker) { return begin_of(worker) <= time; }));
}

}  // namespace

std::vector<Series> run_joining(const ReportRow& row) {
  const TemporaryFolder folder;
  const std::chrono::milliseconds apart(std::int64_t(row.apart_s * 1000));
  if (row.gbps > 0) {
    SecretKey::make().write_new(folder.path(kKey));
    const Lab lab(row.workers + 1, {.gbps = row.gbps});
    std::vector<std::string> addresses;
    for (int host = 0; host <= row.workers; ++host)
      addresses.push_back(lab_address(host) + ":2222");
    run_tasks(tasks_of(row, addresses, folder.path()), apart,
              [&](std::size_t task, const auto& words) { return lab.on_host(int(task), words); });
  } else {
    const HeldPorts ports(row.workers + 1);
    run_tasks(tasks_of(row, ports.addresses(), folder.path()), apart);
  }
  return speeds_over_time(folder.path());
}

KeptSpeed least_kept(const std::vector<Series>& workers, const std::vector<double>& allowed) {
  KeptSpeed least{1, 0};
  for (const Series& worker : workers) {
    const auto points = double(worker.points.size());
    KeptSpeed kept;
    for (const auto& [time, speed] : worker.points) {
      kept.per_s += speed / points;
      kept.allowed += allowed[training_at(workers, time) - 1] / points;
    }
    if (kept.per_s * least.allowed <= least.per_s * kept.allowed) least = kept;
  }
  return least;
}

Series allowed_over_time(const std::vector<Series>& workers, const std::vector<double>& allowed) {
  Series all{"bound", {}};
  double end = 0;
  for (const Series& worker : workers) {
    const double begin = begin_of(worker);
    all.points.emplace_back(begin, allowed[training_at(workers, begin) - 1]);
    end = std::max(end, worker.points.back().first);
  }
  std::ranges::sort(all.points);
  all.points.emplace_back(end, allowed[workers.size() - 1]);
  return all;
}

}  // namespace paceline::bench
