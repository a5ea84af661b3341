#include "bench/report_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

#include "base/cores.h"
#include "base/nearest.h"
#include "base/real_clock.h"
#include "bench/generated_text.h"
#include "bench/report_rows.h"
#include "bench/step_work.h"
#include "bench/train_run.h"
#include "cluster/lab/lab.h"
#include "cluster/lab/lab_options.h"
#include "cluster/launch/held_ports.h"
#include "paceline/error.h"
#include "predict/link_payload.h"
#include "predict/ps_bound.h"
#include "predict/roof.h"

namespace paceline::bench {
namespace {

const char* const kTimedSeconds = "8";
constexpr std::int64_t kReportWords = 1'000'000;

std::vector<std::string> arguments_of(const ReportRow& row, GeneratedText& text) {
  std::vector<std::string> arguments = {
      "train",         std::string(row.report),          "--device",  "sim",
      "--sim-step-ms", fmt::format("{}", row.device_ms), "--seconds", kTimedSeconds};
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  if (row.report == "ptb") add("--data", text.folder());
  if (row.ps > 0) {
    add("--ps", std::to_string(row.ps));
    add("--workers", std::to_string(row.workers));
  }
  if (row.towers > 1) add("--towers", std::to_string(row.towers));
  if (row.gbps > 0) {
    add("--lab-gbps", fmt::format("{}", row.gbps));
    row.place.empty() ? add("--lab-hosts", std::to_string(row.ps + row.workers))
                      : add("--lab-place", std::string(row.place));
  }
  if (row.straggler) add("--sim-straggler", fmt::format("{}:3", row.workers - 1));
  std::istringstream more{std::string(row.flags)};
  for (std::string word; more >> word;) arguments.push_back(word);
  return arguments;
}

// Returns the number of workers that are as fast as they can be.
int counted_workers(const ReportRow& row) { return row.workers - (row.straggler ? 1 : 0); }

// Those of the counted workers: a straggler should take nothing from them.
PsHosts hosts_of(const ReportRow& row) {
  LabOptions lab{.hosts = row.gbps > 0 ? row.ps + row.workers : 1};
  if (row.place.empty()) {
    spread_tasks(lab, row.ps, counted_workers(row));
  } else {
    lab = parse_lab_place(std::string(row.place));
  }
  return {.ps = lab.ps,
          .workers = lab.workers,
          .link_bytes_per_s = row.gbps * kPayloadOfGigabit,
          .memory_bytes_per_s = 0};
}

bool has_flag(const ReportRow& row, std::string_view flag) {
  return row.flags.find(flag) != std::string_view::npos;
}

/// The work of a row's steps.
class RowBound {
 public:
  RowBound(const ReportRow& row, GeneratedText& text) : row_(row) {
    const models::Model& model = *models::find_model(row.report);
    Settings settings = model.settings();
    if (row.report == "ptb") settings = model.settings({{"data", text.folder()}});
    step_ = std::move(model.step_graphs(settings)[0]);
    const PlanRequest request = request_of(step_);
    const auto device = make_device({.kind = "naive"}, clock_);
    specs_ = variable_specs({&request.graph, 1}, request.training);
    const auto plan = make_plan(request, specs_, *device);
    work_ = paceline::step_work(*plan, specs_);
    schedule_ = step_schedule(*plan, specs_.size(), row.device_ms * 1e-3);
    if (has_flag(row, "--wire bfloat16")) {
      for (std::vector<double>* bytes : {&work_.bytes_in, &work_.bytes_out}) {
        for (double& each : *bytes) each /= 2;
      }
    }
  }

  PsBound by(const Roof& roof) const {
    if (row_.ps == 0) {
      // One process applies its rules on its own thread, after the device's kernels.
      const double seconds = schedule_.seconds + work_.rule_bytes / roof.bytes_per_s;
      return {row_.towers / seconds, {row_.towers / seconds}, "the devices and their rules"};
    }
    PsHosts hosts = hosts_of(row_);
    hosts.memory_bytes_per_s = roof.bytes_per_s;
    if (has_flag(row_, "--strategy sync")) hosts.contributions = counted_workers(row_);
    return ps_bound(work_, schedule_, place_variables(specs_, row_.ps), hosts);
  }

 private:
  const ReportRow& row_;
  RealClock clock_;
  models::StepGraph step_;
  std::vector<VariableSpec> specs_;
  StepCost work_;
  StepSchedule schedule_;
};

double steps_per_s(Report report, const ReportRow& row) {
  const std::string left_out = row.straggler ? fmt::format("worker:{}", row.workers - 1) : "";
  std::erase_if(report.tasks, [&](const TaskReport& task) { return task.task == left_out; });
  return total_steps_per_s(report) * row.towers;
}

void measure_row(Recorder& recorder, const ReportRow& row, GeneratedText& text) {
  const std::string name = fmt::format("{}, {}", row.report, row.name);
  const RowBound bound(row, text);
  std::vector<double> made, allowed;
  std::string limit;
  for (int i = 0; i < recorder.repeats(); ++i) {
    recorder.progress(fmt::format("{}, {} of {}", name, i + 1, recorder.repeats()));
    const PsBound now = bound.by(measure_roof(DType::kFloat32, cores_of_machine()));
    made.push_back(steps_per_s(run_train(arguments_of(row, text)), row));
    allowed.push_back(now.steps_per_s);
    limit = now.limit;
  }
  recorder.add(figure_beside(name, "steps/s", made, fmt::format("bound ({})", limit), allowed));
}

// Workers that join a job one after the other. The job has steps for all of them until the last one
// has trained for twice as long as lies between two starts.
constexpr ReportRow kJoining{"resnet", "the slowest of 8 workers that start 5 s apart", 333, 1, 8};
constexpr std::chrono::seconds kApart{5};

std::vector<std::vector<std::string>> joining_tasks(const std::vector<std::string>& addresses) {
  const int workers = kJoining.workers;
  const int starts_apart = (workers - 1) * workers / 2 + 2 * workers;  // of all workers together
  const double worker_seconds = double(starts_apart) * double(kApart.count());
  const std::string of_workers =
      fmt::format("{}", fmt::join(addresses.begin() + 1, addresses.end(), ","));
  std::vector<std::vector<std::string>> tasks;
  for (int task = 0; task <= workers; ++task) {
    tasks.push_back({"train", std::string(kJoining.report), "--device", "sim", "--sim-step-ms",
                     fmt::format("{}", kJoining.device_ms), "--threads", "1", "--steps",
                     fmt::format("{:.0f}", worker_seconds * 1000 / kJoining.device_ms), "--cluster",
                     fmt::format("ps={};worker={}", addresses[0], of_workers), "--task",
                     task == 0 ? "ps:0" : fmt::format("worker:{}", task - 1)});
  }
  return tasks;
}

void measure_joining(Recorder& recorder) {
  const std::string name = fmt::format("{}, {}", kJoining.report, kJoining.name);
  std::vector<double> slowest, alone;
  for (int i = 0; i < recorder.repeats(); ++i) {
    recorder.progress(fmt::format("{}, {} of {}", name, i + 1, recorder.repeats()));
    const HeldPorts ports(kJoining.workers + 1);
    const Report report = run_tasks(joining_tasks(ports.addresses()), kApart);
    double least = std::numeric_limits<double>::infinity();
    for (const TaskReport& task : report.tasks) {
      if (task.task.starts_with("worker")) least = std::min(least, task.steps_per_s.value_or(0));
    }
    slowest.push_back(least);
    alone.push_back(1000 / kJoining.device_ms);
  }
  recorder.add(figure_beside(name, "steps/s", slowest, "bound (the device)", alone));
}

std::vector<std::string_view> report_names() {
  std::vector<std::string_view> names;
  for (const ReportRow& row : report_rows()) {
    if (names.empty() || names.back() != row.report) names.push_back(row.report);
  }
  return names;
}

}  // namespace

void check(const ReportSelection& selection) {
  if (selection.only.empty()) return;
  const std::vector<std::string_view> names = report_names();
  if (std::ranges::find(names, selection.only) != names.end()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("--only {}: is none of {}{}", selection.only, fmt::join(names, ", "),
                          did_you_mean(selection.only, names)));
}

void measure_reports(Recorder& recorder, const ReportSelection& selection) {
  GeneratedText text(kReportWords);
  const std::string why = why_no_lab();
  if (!why.empty()) recorder.note("Rows with links of a limited rate are left out: " + why);
  for (const ReportRow& row : report_rows()) {
    if (!selection.only.empty() && row.report != selection.only) continue;
    if (selection.quick && !row.quick) continue;
    if (row.gbps > 0 && !why.empty()) continue;
    measure_row(recorder, row, text);
  }
  if (!selection.quick && (selection.only.empty() || selection.only == kJoining.report)) {
    measure_joining(recorder);
  }
}

}  // namespace paceline::bench
