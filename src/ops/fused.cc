// The op that runs a program of element-wise steps (graph/fused_program.h) in one pass over memory.
// Only fusion adds such nodes.
#include "graph/fused_program.h"

#include <fmt/format.h>

#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"

namespace paceline {

namespace {

void check_operands(const OpInputs& in, const std::vector<FusedStep>& program) {
  for (const FusedStep& step : program) {
    for (const FusedOperand& operand : step.operands) {
      if (operand.kind != FusedOperand::Kind::kInput) continue;
      if (std::size_t(operand.index) < in.types.size()) continue;
      in.fail(fmt::format("reads input {} of {}", operand.index, in.types.size()));
    }
  }
}

std::vector<ValueType> infer_fused(const OpInputs& in) {
  check_operands(in, parse_fused_program(in.attributes.get<std::string>("program")));
  if (in.types.empty()) in.fail("needs at least one input");
  expect_one_float_type(in, in.types.size());
  Shape shape = in.shape(0);
  for (const ValueType& type : in.types) {
    const std::optional<Shape> both = broadcast_shape(shape, type.shape);
    if (!both) in.fail("cannot broadcast " + shape.str() + " with " + type.shape.str());
    shape = *both;
  }
  for (const ValueType& type : in.types) {
    if (type.shape == shape || type.shape.elements() == 1) continue;
    in.fail("takes inputs of shape " + shape.str() + " or of one element, not " + type.shape.str());
  }
  return {{in.dtype(0), shape}};
}

Cost cost_of_fused(const Node& node) {
  double flops = 0;
  for (const FusedStep& step : parse_fused_program(node.attributes().get<std::string>("program"))) {
    flops += find_fusable_op(step.op)->flops;
  }
  return {flops * output_elements(node), moved_bytes(node)};
}

}  // namespace

void add_fused_ops(OpRegistry& ops) {
  Op op;
  op.name = "fused_elementwise";
  op.infer = infer_fused;
  op.no_gradient = "it is made by fusion, after differentiation";
  op.cost = cost_of_fused;
  op.in_place = {0, 1, 2, 3, 4, 5, 6, 7};
  ops.add(std::move(op));
}

}  // namespace paceline
