#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_global_norm(const OpInputs& in) {
  if (in.types.empty()) in.fail("no inputs");
  expect_one_float_type(in, in.types.size());
  return {{in.dtype(0), Shape{}}};
}

// The derivative of √(Σx²) by x is x ÷ √(Σx²).
std::vector<Gradient> global_norm_gradient(const Node& node,
                                           std::span<const Value> output_gradients) {
  std::vector<Gradient> gradients(node.inputs().size());
  if (!output_gradients[0]) return gradients;
  const Value factor = div(output_gradients[0], node.output(0));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i].dense = mul(node.input(int(i)), factor);
  }
  return gradients;
}

Cost global_norm_cost(const Node& node) {
  double elements = 0;
  for (const Value& input : node.inputs()) elements += double(input.shape().elements());
  return {2 * elements, moved_bytes(node)};
}

}  // namespace

void add_norm_ops(OpRegistry& ops) {
  Op op;
  op.name = "global_norm";
  op.infer = infer_global_norm;
  op.gradient = global_norm_gradient;
  op.cost = global_norm_cost;
  ops.add(std::move(op));
}

Value global_norm(std::span<const Value> values) {
  if (values.empty()) throw Error(ErrorCode::kInvalidArgument, "[global_norm] no inputs");
  return values[0].graph().add("global_norm", values).output(0);
}

}  // namespace paceline
