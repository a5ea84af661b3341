#include "predict/step_cost.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/row_count.h"
#include "params/variable_arrays.h"
#include "train/external_board.h"

namespace paceline {
namespace {

double bytes_of(const VariableSpec& spec) { return double(byte_count(spec.dtype, spec.shape)); }

void add_use(StepCost& work, const VariableSpec& spec, const PlanBinding::Use& use) {
  const double touched = touched_bytes(spec, use.most_rows);
  work.link_bytes_in += touched;
  work.bytes_in[std::size_t(use.variable)] += touched;
  if (!use.updated) return;
  work.link_bytes_out += touched;
  work.bytes_out[std::size_t(use.variable)] += touched;
  work.rule_bytes += rule_bytes(spec, use);
  if (!use.streamed) work.gradients += touched;
}

// Adds the ops. A streamed output does not count as written, since it never exists as a whole.
void add_ops(StepCost& work, const Plan& plan) {
  for (const Plan::KernelUse& use : plan.kernels)
    work.ops.push_back(use.node->op().cost(*use.node));
  work.reorders = count_reorders(*plan.graph);
  for (const Instruction& each : plan.instructions) {
    if (each.kind != Instruction::Kind::kRun || !each.streamed) continue;
    work.ops[std::size_t(each.kernel)].bytes -=
        double(plan.slots[std::size_t(each.outputs[0])].type.bytes());
  }
}

}  // namespace

double StepCost::flops() const {
  return std::accumulate(ops.begin(), ops.end(), 0.0,
                         [](double sum, const Cost& cost) { return sum + cost.flops; });
}

double rule_bytes_per_element(const Rule& rule) {
  const double value = rule.kind() == RuleKind::kAssign ? 1 : 2, gradient = 1;
  double slots = 0;
  for (const SlotSpec& slot : rule.slots()) slots += slot.scalar ? 0 : 2;
  return (value + gradient + slots) * sizeof(float);
}

double touched_bytes(const VariableSpec& spec, std::int64_t most_rows) {
  return spec.sparse ? double(most_rows) * double(row_bytes(spec)) : bytes_of(spec);
}

double rule_bytes(const VariableSpec& spec, const PlanBinding::Use& use) {
  const double average =
      spec.average_decay > 0 ? 2 * sizeof(float) : 0;  // read once and written once
  const double touched = touched_bytes(spec, use.most_rows);
  const double bytes =
      touched / double(size_of(spec.dtype)) * (rule_bytes_per_element(spec.rule) + average);
  return use.streamed ? bytes - touched : bytes;
}

double slot_bytes(const VariableSpec& spec, double rows) {
  double bytes = 0;
  for (const SlotSpec& slot : slots_of(spec)) {
    bytes += slot.scalar ? double(kScalarSlotBytes) : rows * double(row_bytes(spec));
  }
  return bytes;
}

bool is_computed_outside(const Plan& plan) {
  return std::ranges::any_of(
      plan.kernels, [](const Plan::KernelUse& use) { return bool(use.node->op().first_to_come); });
}

double busy_cores_outside(const Plan& plan) {
  for (const Plan::KernelUse& use : plan.kernels) {
    const Attributes& attributes = use.node->attributes();
    if (attributes.has(kBusyCores)) return attributes.get<double>(kBusyCores);
  }
  return 0;
}

double seconds_outside(const Plan& plan) {
  double seconds = 0;
  for (const Plan::KernelUse& use : plan.kernels) {
    const Attributes& attributes = use.node->attributes();
    if (attributes.has(kBusyCores)) seconds += attributes.get<double>(kSeconds);
  }
  return seconds;
}

StepCost step_work(const Plan& plan, std::span<const VariableSpec> variables) {
  StepCost work;
  work.specs.assign(variables.begin(), variables.end());
  work.bytes_in.resize(variables.size());
  work.bytes_out.resize(variables.size());
  add_ops(work, plan);
  for (const PlanBinding::Use& use : plan.binding.uses) {
    add_use(work, variables[std::size_t(use.variable)], use);
  }
  for (const VariableSpec& spec : variables) {
    work.variables += bytes_of(spec);
    work.slots += slot_bytes(spec, double(row_count(spec.shape)));
  }
  work.activations = double(plan.arena_bytes + plan.input_bytes);
  return work;
}

StepCost step_work(const PlanRequest& request, const DeviceOptions& options) {
  RealClock clock;
  const std::unique_ptr<Device> device = make_device(options, clock);
  const std::vector<VariableSpec> variables = variable_specs({&request.graph, 1}, request.training);
  return step_work(*make_plan(request, variables, *device), variables);
}

}  // namespace paceline
