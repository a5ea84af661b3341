#include "ops/axis.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_cumulative_sum(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  expect_axis(in, in.attributes.get<std::int64_t>("axis"), in.shape(0).rank());
  in.attributes.get<bool>("exclusive");
  in.attributes.get<bool>("reverse");
  return {in.types[0]};
}

}  // namespace

void add_cumulative_sum_ops(OpRegistry& ops) {
  Op op;
  op.name = "cumulative_sum";
  op.infer = infer_cumulative_sum;
  op.gradient = [](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    Attributes attributes = node.attributes();
    attributes.set("reverse", !attributes.get<bool>("reverse"));
    return {dy[0].graph().apply("cumulative_sum", {dy[0]}, attributes)};
  };
  op.cost = elementwise_cost(1);
  op.in_place = {0};
  ops.add(std::move(op));
}

Value cumulative_sum(Value x, int axis, bool exclusive, bool reverse) {
  return x.graph().apply(
      "cumulative_sum", {x},
      {{"axis", std::int64_t(axis)}, {"exclusive", exclusive}, {"reverse", reverse}});
}

}  // namespace paceline
