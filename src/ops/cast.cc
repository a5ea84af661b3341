#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_cast(const OpInputs& in) {
  in.expect_count(1);
  return {{in.attributes.get<DType>("dtype"), in.shape(0)}};
}

/// The gradient is empty unless both types are floating: only then does a small change of the input
/// change the output.
std::vector<Gradient> gradient_of_cast(const Node& node, std::span<const Value> dy) {
  const DType from = node.input(0).dtype();
  if (!is_floating(from) || !is_floating(dy[0].dtype())) return {{}};
  return {cast(dy[0], from)};
}

}  // namespace

void add_cast_ops(OpRegistry& ops) {
  Op op;
  op.name = "cast";
  op.infer = infer_cast;
  op.gradient = gradient_of_cast;
  op.cost = elementwise_cost(1);
  ops.add(std::move(op));
}

Value cast(Value x, DType dtype) { return x.graph().apply("cast", {x}, {{"dtype", dtype}}); }

}  // namespace paceline
