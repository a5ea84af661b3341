#include "evidence/report_bound.h"

#include "bench/step_work.h"
#include "evidence/allreduce_bound.h"
#include "evidence/ps_bound.h"
#include "launch/lab/lab_options.h"
#include "paceline/tensor.h"
#include "run/network_rate.h"

namespace paceline::bench {
namespace {

models::StepGraph step_of(const ReportRow& row, GeneratedText& text) {
  const models::Model& model = *models::find_model(row.report);
  const Settings settings =
      row.report == "ptb" ? model.settings({{"data", text.folder()}}) : model.settings();
  return std::move(model.step_graphs(settings)[0]);
}

SpeedBound by_devices(double steps_per_s_of_each, int devices, const char* limit) {
  return {steps_per_s_of_each * devices,
          std::vector<double>(std::size_t(devices), steps_per_s_of_each),
          limit,
          {{limit, steps_per_s_of_each}}};
}

}  // namespace

int counted_workers(const ReportRow& row) { return row.workers - (row.straggler ? 1 : 0); }

ReportBound::ReportBound(const ReportRow& row, GeneratedText& text) : row_(row) {
  const models::StepGraph step = step_of(row, text);
  const PlanRequest request = request_of(step);
  RealClock clock;
  const auto device = make_device({.kind = "naive"}, clock);
  specs_ = variable_specs({&request.graph, 1}, request.training);
  const auto plan = make_plan(request, specs_, *device);
  work_ = paceline::step_work(*plan, specs_);
  schedule_ = step_schedule(*plan, specs_.size(), row.device_ms * 1e-3);
}

JobHosts ReportBound::hosts(const PredictedHost& machine) const {
  LabOptions lab{.hosts = row_.gbps > 0 ? row_.ps + row_.workers : 1};
  if (row_.place.empty()) {
    spread_tasks(lab, row_.ps, counted_workers(row_));
  } else {
    lab = parse_lab_place(row_.place);
  }
  // With half the bytes for each number, a link carries twice as many numbers.
  const double numbers = row_.bfloat16 ? 2 : 1;
  return {.ps = lab.ps,
          .workers = lab.workers,
          .link_bytes_per_s = row_.gbps * kPayloadOfGigabit * numbers,
          .memory_bytes_per_s = machine.rule_bytes_per_s,
          .contributions = row_.strategy == "sync" ? counted_workers(row_) : 1};
}

// One process applies its rules on its own thread, after the device's kernels.
SpeedBound ReportBound::one_process(const PredictedHost& machine) const {
  const double seconds = schedule_.seconds + work_.rule_bytes / machine.rule_bytes_per_s;
  return by_devices(1 / seconds, row_.towers, "the devices and their rules");
}

// Each worker trains like one process. Every few steps the workers exchange every variable, whole,
// and no step waits for that.
SpeedBound ReportBound::local_steps(const PredictedHost& machine) const {
  StepCost exchanged = work_;
  for (std::size_t v = 0; v < specs_.size(); ++v) {
    if (work_.bytes_out[v] == 0) continue;
    exchanged.bytes_in[v] = exchanged.bytes_out[v] =
        double(byte_count(specs_[v].dtype, specs_[v].shape)) / kReportLocalSteps;
  }
  const StepSchedule alone{schedule_.seconds + work_.rule_bytes / machine.rule_bytes_per_s,
                           std::vector<VariableMoments>(specs_.size())};
  return ps_bound(exchanged, alone, place_variables(specs_, row_.ps), hosts(machine));
}

SpeedBound ReportBound::by(const PredictedHost& machine) const {
  // fetch trains nothing, and the fetched value lies in shared memory, so only the device limits
  // it.
  if (row_.report == "fetch") return by_devices(1 / schedule_.seconds, row_.workers, "the device");
  if (row_.strategy == "local_sgd") return local_steps(machine);
  if (row_.strategy == "allreduce") return allreduce_bound(work_, schedule_, hosts(machine));
  if (row_.ps == 0) return one_process(machine);
  return ps_bound(work_, schedule_, place_variables(specs_, row_.ps), hosts(machine));
}

}  // namespace paceline::bench
