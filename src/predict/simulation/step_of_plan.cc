#include "predict/simulation/step_of_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "params/variable_arrays.h"
#include "predict/step_cost.h"

namespace paceline {
namespace {

/// The time of every kernel of a plan.
class KernelTimes {
 public:
  KernelTimes(const Plan& plan, const DevicePace& pace) : plan_(plan), pace_(pace) {
    for (const Plan::KernelUse& use : plan.kernels) {
      const Cost cost = use.node->op().cost(*use.node);
      costs_.push_back(cost);
      flops_ += cost.flops;
      by_roof_ += at_roof(cost);
    }
  }
  StepAction action(int kernel) const {
    const Cost& cost = costs_[std::size_t(kernel)];
    StepAction action;
    if (pace_.step_seconds > 0 && pace_.threads == 0) {
      const double part = flops_ > 0 ? cost.flops / flops_ : 1.0 / double(plan_.kernels.size());
      action.seconds = pace_.step_seconds * part;
      return action;
    }
    action.seconds = at_roof(cost);
    if (pace_.step_seconds > 0 && by_roof_ > 0) action.seconds *= pace_.step_seconds / by_roof_;
    if (pace_.threads > 0 && cost.bytes > double(pace_.roof.cache_bytes)) {
      action.bytes = cost.bytes * pace_.towers;
    }
    return action;
  }

 private:
  double at_roof(const Cost& cost) const {
    if (pace_.roof.flops_per_s <= 0) return 0;
    const double bytes = cost.bytes > double(pace_.roof.cache_bytes) ? cost.bytes : 0;
    return pace_.launch_seconds +
           std::max(cost.flops / pace_.roof.flops_per_s, bytes / pace_.roof.bytes_per_s);
  }
  const Plan& plan_;
  const DevicePace& pace_;
  std::vector<Cost> costs_;
  double flops_ = 0, by_roof_ = 0;
};

void add_run(SimulatedStep& step, const StepAction& action) {
  if (action.seconds <= 0 && action.bytes <= 0) return;
  if (!step.actions.empty() && step.actions.back().kind == StepAction::Kind::kRun) {
    step.actions.back().seconds += action.seconds;
    step.actions.back().bytes += action.bytes;
  } else {
    step.actions.push_back(action);
  }
}

// The thread that makes a step first puts its batch where the step reads it. The thread draws
// numbers, or copies them from a pipeline, at about this rate: steps of cifar10 on simulated
// devices take 0.9 ms longer than their devices alone, and their batches have 0.88 MB.
double input_seconds(const Plan& plan) {
  constexpr double kBytesPerSecond = 1e9;
  return double(plan.input_bytes) / kBytesPerSecond;
}

void add_variables(SimulatedStep& step, const Plan& plan) {
  step.variables.resize(step.specs.size());
  for (const PlanBinding::Use& use : plan.binding.uses) {
    const VariableSpec& spec = step.specs[std::size_t(use.variable)];
    StepVariable& variable = step.variables[std::size_t(use.variable)];
    variable = {
        .read = true, .updated = use.updated, .reread = use.reread, .most_rows = use.most_rows};
    step.need_order.push_back(use.variable);
    if (use.updated) variable.rule_bytes = rule_bytes(spec, use);
  }
}

}  // namespace

SimulatedStep simulated_step(const Plan& plan, std::span<const VariableSpec> specs,
                             const DevicePace& pace, double examples) {
  SimulatedStep step;
  step.specs.assign(specs.begin(), specs.end());
  step.clipped = plan.clipped();
  step.examples = examples;
  step.input_seconds = input_seconds(plan);
  step.threads = pace.threads * pace.towers;
  step.busy = pace.busy;
  step.towers = pace.towers;
  step.rule_threads = pace.rule_threads;
  add_variables(step, plan);
  const KernelTimes times(plan, pace);
  const auto touched = [&](VariableId v) {
    return touched_bytes(step.specs[std::size_t(v)], step.variables[std::size_t(v)].most_rows);
  };
  const auto copy = [&](double bytes, double rate) {
    if (rate > 0) add_run(step, {.seconds = bytes / rate});
  };
  copy(double(plan.input_bytes), pace.upload_bytes_per_s);
  for (const Instruction& each : plan.instructions) {
    switch (each.kind) {
      case Instruction::Kind::kRun:
        add_run(step, times.action(each.kernel));
        break;
      case Instruction::Kind::kNeed:
        step.actions.push_back({StepAction::Kind::kNeed, each.variable});
        copy(touched(each.variable), pace.upload_bytes_per_s);
        break;
      case Instruction::Kind::kReady:
        copy(touched(each.variable), pace.download_bytes_per_s);
        step.actions.push_back(
            {StepAction::Kind::kReady, each.variable, 0, touched(each.variable)});
        break;
      case Instruction::Kind::kPlace:
      case Instruction::Kind::kCopy:
        break;
    }
  }
  return step;
}

SimulatedStep simulated_step(const ModelSizes& sizes) {
  SimulatedStep step;
  const int tensors = std::max(1, sizes.tensors);
  const auto elements = std::max<std::int64_t>(1, std::llround(sizes.parameters / tensors));
  const double each = sizes.step_seconds / (3 * tensors);
  for (VariableId v = 0; v < tensors; ++v) {
    step.specs.push_back({.name = fmt::format("tensor {}", v + 1), .shape = {elements}});
    step.variables.push_back({.read = true,
                              .updated = true,
                              .rule_bytes = double(elements) * sizes.rule_bytes_per_parameter});
    step.need_order.push_back(v);
    step.actions.push_back({StepAction::Kind::kNeed, v});
    step.actions.push_back({StepAction::Kind::kRun, -1, each});
  }
  for (VariableId v = tensors; v-- > 0;) {
    step.actions.push_back({StepAction::Kind::kRun, -1, 2 * each});
    step.actions.push_back({StepAction::Kind::kReady, v});
  }
  return step;
}

}  // namespace paceline
