#include "evidence/report_run.h"

#include <fmt/format.h>

#include "bench/train_run.h"
#include "evidence/report_bound.h"

namespace paceline::bench {
namespace {

std::vector<std::string> arguments_of_row(const ReportRow& row, GeneratedText& text) {
  std::vector<std::string> arguments = {"train",         row.report,
                                        "--device",      "sim",
                                        "--sim-step-ms", fmt::format("{}", row.device_ms),
                                        "--seconds",     fmt::format("{}", row.seconds)};
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  if (row.report == "ptb") add("--data", text.folder());
  if (row.ps > 0 || row.workers > 1) {
    add("--ps", std::to_string(row.ps));
    add("--workers", std::to_string(row.workers));
  }
  if (!row.strategy.empty()) add("--strategy", row.strategy);
  if (row.strategy == "local_sgd") add("--local-steps", std::to_string(kReportLocalSteps));
  if (row.backups > 0) add("--replicas-to-aggregate", std::to_string(row.workers - row.backups));
  if (row.towers > 1) add("--towers", std::to_string(row.towers));
  if (row.gbps > 0) {
    add("--lab-gbps", fmt::format("{}", row.gbps));
    row.place.empty() ? add("--lab-hosts", std::to_string(row.ps + row.workers))
                      : add("--lab-place", row.place);
  }
  if (row.bfloat16) add("--wire", "bfloat16");
  if (row.straggler) add("--sim-straggler", fmt::format("{}:3", row.workers - 1));
  return arguments;
}

// Every worker makes a step with its part of a batch while the others make theirs; tasks that share
// cores sleep while they wait. Workers are as fast as each other, so that each makes as many parts
// as the chief, which has the times. A simulated step that ends late makes the next one shorter:
// only their mean has a meaning.
double batches_per_s(const ReportRow& row) {
  const Report report = run_train({"train",         "fetch",
                                   "--ps",          std::to_string(row.ps),
                                   "--workers",     std::to_string(row.workers),
                                   "--threads",     "1",
                                   "--link",        "shm",
                                   "--device",      "sim",
                                   "--sim-step-ms", fmt::format("{}", row.device_ms),
                                   "--seconds",     fmt::format("{}", row.seconds),
                                   "--features",    "128",
                                   "--batch",       "16",
                                   "--hidden",      "256"});
  return 1e6 / value_of(report, "fetch/128,16,256", "remote_mean_us");
}

}  // namespace

const char* unit_of(const ReportRow& row) {
  if (row.report == "fetch") return "batches/s";
  return row.rounds ? "rounds/s" : "steps/s";
}

double run_report_row(const ReportRow& row, GeneratedText& text) {
  if (row.report == "fetch") return batches_per_s(row);
  Report report = run_train(arguments_of_row(row, text));
  const std::string left_out = row.straggler ? fmt::format("worker:{}", row.workers - 1) : "";
  std::erase_if(report.tasks, [&](const TaskReport& task) { return task.task == left_out; });
  const double steps = total_steps_per_s(report) * row.towers;
  return row.rounds ? steps / counted_workers(row) : steps;
}

}  // namespace paceline::bench
