#include "evidence/step_schedule.h"

#include "paceline/op.h"

namespace paceline {

StepSchedule step_schedule(const Plan& plan, std::size_t variables, double seconds) {
  double flops = 0;
  for (const Plan::KernelUse& use : plan.kernels) flops += use.node->op().cost(*use.node).flops;
  StepSchedule schedule{seconds, std::vector<VariableMoments>(variables)};
  double now = 0;
  for (const Instruction& each : plan.instructions) {
    if (each.kind == Instruction::Kind::kRun) {
      const Node& node = *plan.kernels[std::size_t(each.kernel)].node;
      const double share =
          flops > 0 ? node.op().cost(node).flops / flops : 1.0 / double(plan.kernels.size());
      now += seconds * share;
    } else if (each.kind == Instruction::Kind::kNeed) {
      schedule.variables[std::size_t(each.variable)].needed = now;
    } else if (each.kind == Instruction::Kind::kReady) {
      schedule.variables[std::size_t(each.variable)].ready = now;
    }
  }
  return schedule;
}

}  // namespace paceline
