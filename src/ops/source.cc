// Ops whose values are given, not computed. They have no kernels, since an executor knows where the
// values are.
#include "ops/builtin_ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_declared(const OpInputs& in) {
  in.expect_count(0);
  const auto& dims = in.attributes.get<std::vector<std::int64_t>>("shape");
  return {{in.attributes.get<DType>("dtype"), Shape(dims)}};
}

std::vector<ValueType> infer_constant(const OpInputs& in) {
  in.expect_count(0);
  const Tensor& value = in.attributes.get<Tensor>("value");
  return {{value.dtype(), value.shape()}};
}

Op source(const char* name, std::vector<ValueType> (*infer)(const OpInputs&)) {
  Op op;
  op.name = name;
  op.infer = infer;
  op.no_gradient = "it has no inputs";
  op.cost = [](const Node&) { return Cost{}; };
  return op;
}

}  // namespace

void add_source_ops(OpRegistry& ops) {
  // Equal nodes are merged unless they are stateful. Two inputs of one shape are still two values,
  // so all sources but constants are stateful.
  for (const char* name : {"input", "variable", "local"}) {
    Op op = source(name, infer_declared);
    op.stateful = true;
    ops.add(std::move(op));
  }
  ops.add(source("constant", infer_constant));
}

}  // namespace paceline
