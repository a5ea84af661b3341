// Arithmetic of two operands with NumPy broadcasting.
#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/scalar.h"
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

/// Makes the gradient function of a binary op. `derivatives` returns the gradients of both operands
/// in the output's shape.
template <typename F>
auto gradient_of(F derivatives) {
  return [derivatives](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    const Operands d = derivatives(node, dy[0]);
    return {sum_to_shape(d.a, node.input(0).shape()), sum_to_shape(d.b, node.input(1).shape())};
  };
}

template <typename F>
Op binary(const char* name, F derivatives) {
  Op op;
  op.name = name;
  op.infer = infer_binary;
  op.gradient = gradient_of(derivatives);
  op.cost = fusable_cost(name);
  // An operand that is broadcast is smaller than the output, so the output never takes its memory.
  op.in_place = {0, 1};
  return op;
}

Value apply_binary(const char* op, Value a, Value b) { return a.graph().apply(op, {a, b}); }

/// Gives the gradient to operand a where `condition` is not zero, and to b elsewhere.
Operands divided(Value condition, Value dy) {
  const Value zero = scalar_like(dy, 0);
  return {where(condition, dy, zero), where(condition, zero, dy)};
}

/// The derivative by the base is b·a^(b−1), or 0 where b is 0. That by the exponent is a^b·ln a. It
/// counts as 0 where a is not above 0: such powers exist for some exponents only, so they have no
/// derivative.
Operands derivatives_of_pow(const Node& node, Value dy) {
  const Value a = node.input(0), b = node.input(1), zero = scalar_like(dy, 0);
  const Value by_base = where(b, mul(b, pow(a, b - 1)), zero);
  const Value log_base = log(where(greater(a, zero), a, scalar_like(dy, 1)));
  return {mul(dy, by_base), mul(dy, mul(node.output(0), log_base))};
}

Op comparison(const char* name) {
  Op op = binary(name, [](const Node&, Value) { return Operands{}; });
  // A comparison is constant except where it jumps, so its gradient is 0.
  op.gradient = [](const Node&, std::span<const Value>) { return std::vector<Gradient>(2); };
  return op;
}

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
  ops.add(binary("maximum", [](const Node& node, Value dy) {
    return divided(greater_equal(node.input(0), node.input(1)), dy);
  }));
  ops.add(binary("minimum", [](const Node& node, Value dy) {
    return divided(greater_equal(node.input(1), node.input(0)), dy);
  }));
  ops.add(binary("pow", derivatives_of_pow));
  for (const char* name : {"greater", "greater_equal", "equal"}) ops.add(comparison(name));
}

Value add(Value a, Value b) { return apply_binary("add", a, b); }
Value sub(Value a, Value b) { return apply_binary("sub", a, b); }
Value mul(Value a, Value b) { return apply_binary("mul", a, b); }
Value div(Value a, Value b) { return apply_binary("div", a, b); }
Value maximum(Value a, Value b) { return apply_binary("maximum", a, b); }
Value minimum(Value a, Value b) { return apply_binary("minimum", a, b); }
Value pow(Value a, Value b) { return apply_binary("pow", a, b); }
Value greater(Value a, Value b) { return apply_binary("greater", a, b); }
Value greater_equal(Value a, Value b) { return apply_binary("greater_equal", a, b); }
Value less(Value a, Value b) { return greater(b, a); }
Value less_equal(Value a, Value b) { return greater_equal(b, a); }
Value equal(Value a, Value b) {
  if (is_floating(a.dtype()) || a.dtype() != b.dtype()) return apply_binary("equal", a, b);
  const Value same = apply_binary("equal", cast(a, DType::kFloat64), cast(b, DType::kFloat64));
  return cast(same, DType::kFloat32);
}

}  // namespace paceline
