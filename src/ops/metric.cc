#include <fmt/format.h>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

void expect_columns(const OpInputs& in) {
  expect_one_float_type(in, 1);
  expect_rank(in, 0, "x", 2);
  if (in.shape(0)[1] == 0) in.fail(fmt::format("rows of {} are empty", in.shape(0).str()));
}

std::vector<ValueType> infer_arg_max(const OpInputs& in) {
  in.expect_count(1);
  expect_columns(in);
  return {{DType::kInt32, Shape{in.shape(0)[0]}}};
}

std::vector<ValueType> infer_top_k_accuracy(const OpInputs& in) {
  in.expect_count(2);
  expect_columns(in);
  expect_int32(in, 1, "labels");
  expect_shape(in, 1, "labels", Shape{in.shape(0)[0]});
  if (in.shape(0)[0] == 0) in.fail("no share of no rows: " + in.shape(0).str());
  const std::int64_t k = in.attributes.get<std::int64_t>("k");
  if (k < 1 || k > in.shape(0)[1]) {
    in.fail(fmt::format("k is {}; logits are {}", k, in.shape(0).str()));
  }
  return {{in.dtype(0), Shape{}}};
}

Op metric(const char* name, std::vector<ValueType> (*infer)(const OpInputs&)) {
  Op op;
  op.name = name;
  op.infer = infer;
  op.no_gradient = "it does not change smoothly";
  op.cost = [](const Node& node) {
    return Cost{double(node.input(0).shape().elements()), moved_bytes(node)};
  };
  return op;
}

}  // namespace

void add_metric_ops(OpRegistry& ops) {
  ops.add(metric("arg_max", infer_arg_max));
  ops.add(metric("top_k_accuracy", infer_top_k_accuracy));
}

Value arg_max(Value x) { return x.graph().apply("arg_max", {x}); }

Value top_k_accuracy(Value logits, Value labels, int k) {
  return logits.graph().apply("top_k_accuracy", {logits, labels}, {{"k", std::int64_t(k)}});
}

}  // namespace paceline
