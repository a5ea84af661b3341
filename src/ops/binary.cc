// Arithmetic of two operands with NumPy broadcasting.
#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<ValueType> infer_binary(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, in.types.size());
  const std::optional<Shape> shape = broadcast_shape(in.shape(0), in.shape(1));
  if (!shape) in.fail("cannot broadcast " + shapes_str(in));
  return {{in.dtype(0), *shape}};
}

struct Operands {
  Value a, b;
};

/// The gradient of a binary op from those of its operands as if they had the output's shape.
template <typename F>
auto gradient_of(F derivatives) {
  return [derivatives](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    const Operands d = derivatives(node, dy[0]);
    return {{sum_to_shape(d.a, node.input(0).shape()), {}, {}},
            {sum_to_shape(d.b, node.input(1).shape()), {}, {}}};
  };
}

template <typename F>
Op binary(const char* name, F derivatives) {
  Op op;
  op.name = name;
  op.infer = infer_binary;
  op.gradient = gradient_of(derivatives);
  op.cost = fusable_cost(name);
  // An operand that repeats is smaller than the output, so its memory is never taken.
  op.in_place = {0, 1};
  return op;
}

Value apply_binary(const char* op, Value a, Value b) { return a.graph().apply(op, {a, b}); }

}  // namespace

void add_binary_ops(OpRegistry& ops) {
  ops.add(binary("add", [](const Node&, Value dy) { return Operands{dy, dy}; }));
  ops.add(binary("sub", [](const Node&, Value dy) { return Operands{dy, scale(dy, -1)}; }));
  ops.add(binary("mul", [](const Node& node, Value dy) {
    return Operands{mul(dy, node.input(1)), mul(dy, node.input(0))};
  }));
  ops.add(binary("div", [](const Node& node, Value dy) {
    const Value b = node.input(1);
    return Operands{div(dy, b), scale(mul(dy, div(node.output(0), b)), -1)};
  }));
}

Value add(Value a, Value b) { return apply_binary("add", a, b); }
Value sub(Value a, Value b) { return apply_binary("sub", a, b); }
Value mul(Value a, Value b) { return apply_binary("mul", a, b); }
Value div(Value a, Value b) { return apply_binary("div", a, b); }

}  // namespace paceline
