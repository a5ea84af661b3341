#include "predict/sized_job.h"

#include <fmt/format.h>

#include "predict/simulation/step_of_plan.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

// Assumptions for a host of which nothing else is known.
constexpr double kUsualMemory = 50e9, kUsualCores = 16;

}  // namespace

JobShape shape_of(const SizedJob& job) {
  JobShape shape{.strategy = job.strategy, .ps = job.ps, .workers = job.workers};
  if (shape.is_one_process()) shape.strategy.name.clear();
  for (int i = 0; i < job.ps; ++i) shape.ps_hosts.push_back(job.gbps > 0 ? i : 0);
  for (int i = 0; i < job.workers; ++i) {
    shape.worker_hosts.push_back(job.gbps > 0 ? job.ps + i : 0);
  }
  return shape;
}

PredictedJob predicted_job_of(const SizedJob& job, bool own_transport) {
  PredictedJob made;
  const SimulatedStep step = simulated_step(ModelSizes{
      .parameters = job.parameters, .tensors = job.tensors, .step_seconds = job.step_ms * 1e-3});
  made.step = [step, examples = job.examples](const StepOf& of) {
    SimulatedStep one = step;
    one.examples = examples;
    // The given time of a step in one process already includes that of its rules.
    if (of.own_rules) {
      for (StepVariable& use : one.variables) use.rule_bytes = 0;
    }
    return one;
  };
  const int hosts = job.gbps > 0 ? job.ps + job.workers : 1;
  for (int i = 0; i < hosts; ++i) {
    made.hosts.push_back({.name = fmt::format("host {}", i),
                          .cores = kUsualCores,
                          .bytes_per_s = kUsualMemory,
                          .devices = 1 << 20,
                          .link_bytes_per_s = job.gbps * kPayloadOfGigabit,
                          .latency_s = job.latency_us * 1e-6,
                          .machine = i});
  }
  made.input_steps_per_s = job.input_per_s / job.examples;
  if (own_transport) return made;
  // Each tensor has one message in each direction, these are handled one after the other, and
  // nothing goes through shared memory.
  if (job.has_transport()) {
    made.share_memory = false;
    made.costs.serial_message_s = job.message_s;
    made.costs.hand_over_s = 0;                                  // part of a message's time
    made.costs.stream_bytes_per_s = job.stream_bytes_per_s / 2;  // of both directions together
  }
  return made;
}

}  // namespace paceline
