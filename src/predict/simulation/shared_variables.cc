#include "predict/simulation/shared_variables.h"

#include <vector>

#include "params/variable_arrays.h"
#include "predict/step_cost.h"

namespace paceline {

const StrategyKind& kind_of(const SimulatedJob& job) {
  return strategy_kind(job.strategy,
                       kind_of(int(job.cluster.ps.size()), int(job.cluster.workers.size())));
}

OuterOptions outer_options_of(const SimulatedJob& job) {
  return outer_options_of(job.strategy, !job.cluster.ps.empty(), int(job.cluster.workers.size()));
}

SimulatedStep outer_step(const SimulatedJob& job) {
  SimulatedStep step;
  step.specs = outer_variables(job.step->specs, outer_options_of(job));
  step.examples = job.step->examples;
  step.threads = job.step->threads;
  step.rule_threads = job.step->rule_threads;
  for (std::size_t v = 0; v < step.specs.size(); ++v) {
    const VariableSpec& spec = step.specs[v];
    StepVariable& use = step.variables.emplace_back();
    if (!spec.trained) continue;
    use = {.read = true, .updated = true, .reread = true};
    use.rule_bytes = rule_bytes(spec, {.variable = VariableId(v), .updated = true});
  }
  const OuterSchedule schedule = outer_schedule(job);
  for (int fragment = 0; fragment < schedule.fragments(); ++fragment) {
    const auto variables = schedule.variables_of(fragment);
    step.need_order.insert(step.need_order.end(), variables.begin(), variables.end());
  }
  return step;
}

OuterSchedule outer_schedule(const SimulatedJob& job) {
  return outer_schedule_of(job.step->specs, outer_options_of(job));
}

SimulatedStep part_of_step(const SimulatedStep& step, const HybridPlaces& places, bool sparse) {
  SimulatedStep part;
  part.clipped = step.clipped;
  part.examples = step.examples;
  part.threads = step.threads;
  part.rule_threads = step.rule_threads;
  for (const VariableId v : places.of(sparse)) {
    part.specs.push_back(step.specs[std::size_t(v)]);
    part.variables.push_back(step.variables[std::size_t(v)]);
  }
  for (const VariableId v : step.need_order) {
    if (places.is_sparse(v) == sparse) part.need_order.push_back(places.there(v));
  }
  return part;
}

}  // namespace paceline
