#include "evidence/prediction_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/philox.h"

namespace paceline::bench {
namespace {

/// A workload at the speed of its report's devices.
struct Workload {
  std::string_view model;
  double device_ms, seconds;
};
constexpr Workload kWorkloads[] = {
    {"mlp", 5.6, 2}, {"ptb", 36, 2}, {"cifar10", 21, 2}, {"resnet", 333, 3}};
constexpr int kWorkers[] = {1, 2, 4, 8}, kPs[] = {1, 2, 4};
constexpr int kComputingWorkers[] = {1, 2, 4};
constexpr double kComputedSeconds = 4;

/// A workload that this machine's cores compute.
struct ComputedWorkload {
  std::string_view model, setting = {}, value = {};
};
constexpr ComputedWorkload kComputedWorkloads[] = {
    {"mlp"}, {"ptb"}, {"cifar10"}, {"resnet", "depth", "20"}};

/// How tasks are joined. A link has a rate if each task has its own emulated host.
struct JoinedBy {
  std::string_view name;
  double gbps = 0;
};
constexpr JoinedBy kJoinedBy[] = {{"shm"}, {"tcp"}, {"1 Gbit/s", 1}, {"0.25 Gbit/s", 0.25}};

// Returns true if a step takes so long on its link that no time would be left for other rows.
bool is_too_slow(const PredictionRow& row) {
  return row.model == "mlp" && row.gbps > 0 && row.workers > 2 * row.gbps;
}

void add_prediction_row(std::vector<PredictionRow>& rows, PredictionRow row) {
  const double seconds = row.seconds;
  for (const JoinedBy& each : kJoinedBy) {
    row.link = each.name;
    row.gbps = each.gbps;
    row.bfloat16 = false;
    // On slow links a step takes long, and so does the time until workers fall into a rhythm.
    row.seconds = each.gbps > 0 ? 2 * seconds : seconds;
    if (is_too_slow(row)) continue;
    rows.push_back(row);
    if (each.gbps == 0 || row.strategy != "async") continue;
    row.bfloat16 = true;
    rows.push_back(row);
  }
}

void add_workload(std::vector<PredictionRow>& rows, const Workload& workload) {
  PredictionRow row{.model = std::string(workload.model),
                    .device_ms = workload.device_ms,
                    .strategy = "local_sgd",
                    .link = "shm",
                    .seconds = workload.seconds};
  rows.push_back(row);
  for (const int workers : kWorkers) {
    row.workers = workers;
    for (const int ps : kPs) {
      if (ps > workers) continue;
      row.ps = ps;
      for (const char* strategy : {"async", "ssp", "sync"}) {
        row.strategy = strategy;
        if (workers > 1 || row.strategy == "async") add_prediction_row(rows, row);
      }
    }
    row.ps = 0;
    row.strategy = "allreduce";
    if (workers > 1) add_prediction_row(rows, row);
  }
}

void add_computed_workload(std::vector<PredictionRow>& rows, const ComputedWorkload& workload) {
  PredictionRow row{.model = std::string(workload.model),
                    .strategy = "local_sgd",
                    .link = "shm",
                    .seconds = kComputedSeconds};
  if (!workload.setting.empty()) row.settings.emplace(workload.setting, workload.value);
  rows.push_back(row);
  for (const int workers : kComputingWorkers) {
    row.workers = workers;
    for (const char* strategy : {"async", "sync", "allreduce"}) {
      row.strategy = strategy;
      row.ps = row.strategy == "allreduce" ? 0 : 1;
      if (workers > 1 || row.strategy == "async") rows.push_back(row);
    }
  }
}

// Mixes the rows in the same order in all versions, so that the first rows are already of all
// kinds.
void mix(std::vector<PredictionRow>& rows) {
  std::ranges::stable_sort(rows, {},
                           [](const PredictionRow& row) { return random_key(1, row.name()); });
}

}  // namespace

std::string PredictionRow::name() const {
  const char* const how = computed() ? ", computed" : "";
  if (alone()) return fmt::format("{}, one process{}", model, how);
  return fmt::format("{}, {}, {} ps + {} worker{}, {}{}{}", model, strategy, ps, workers,
                     workers == 1 ? "" : "s", link, bfloat16 ? ", bfloat16" : "", how);
}

std::vector<std::string> PredictionRow::flags() const {
  std::vector<std::string> flags;
  const auto add = [&](const std::string& flag, const std::string& value) {
    flags.insert(flags.end(), {flag, value});
  };
  for (const auto& [name, value] : settings) add("--set", fmt::format("{}={}", name, value));
  if (!computed()) {
    add("--device", "sim");
    add("--sim-step-ms", fmt::format("{}", device_ms));
  }
  add("--seconds", fmt::format("{}", seconds));
  if (alone()) return flags;
  add("--ps", std::to_string(ps));
  add("--workers", std::to_string(workers));
  add("--strategy", strategy);
  if (gbps > 0) {
    add("--lab-hosts", std::to_string(ps + workers));
    add("--lab-gbps", fmt::format("{}", gbps));
  } else {
    add("--link", link);
  }
  if (bfloat16) add("--wire", "bfloat16");
  return flags;
}

std::vector<PredictionRow> prediction_rows() {
  std::vector<PredictionRow> rows;
  for (const Workload& workload : kWorkloads) add_workload(rows, workload);
  mix(rows);
  return rows;
}

std::vector<PredictionRow> computed_rows() {
  std::vector<PredictionRow> rows;
  for (const ComputedWorkload& workload : kComputedWorkloads) add_computed_workload(rows, workload);
  mix(rows);
  std::ranges::stable_sort(rows, std::greater{}, &PredictionRow::alone);
  return rows;
}

}  // namespace paceline::bench
