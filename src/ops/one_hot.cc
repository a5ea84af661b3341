#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_one_hot(const OpInputs& in) {
  in.expect_count(1);
  expect_int32(in, 0, "ids");
  const std::int64_t depth = in.attributes.get<std::int64_t>("depth");
  const DType dtype = in.attributes.get<DType>("dtype");
  if (depth < 1) in.fail(fmt::format("depth is {} for ids {}", depth, in.shape(0).str()));
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
    in.fail(fmt::format("cannot make {}; float32 or float64 is needed", name_of(dtype)));
  }
  std::vector<std::int64_t> dims(in.shape(0).dims().begin(), in.shape(0).dims().end());
  dims.push_back(depth);
  return {{dtype, Shape(dims)}};
}

}  // namespace

void add_one_hot_ops(OpRegistry& ops) {
  Op op;
  op.name = "one_hot";
  op.infer = infer_one_hot;
  op.no_gradient = "its input is an integer";
  op.cost = elementwise_cost(0);
  ops.add(std::move(op));
}

Value one_hot(Value ids, std::int64_t depth, DType dtype) {
  return ids.graph().apply("one_hot", {ids}, {{"depth", depth}, {"dtype", dtype}});
}

}  // namespace paceline
