// Choices between two operands.
#include <array>
#include <optional>

#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/scalar.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

/// Returns the shape to which all inputs can be broadcast.
Shape common_shape(const OpInputs& in) {
  Shape shape = in.shape(0);
  for (const ValueType& type : in.types) {
    const std::optional<Shape> both = broadcast_shape(shape, type.shape);
    if (!both) in.fail("cannot broadcast " + shape.str() + " with " + type.shape.str());
    shape = *both;
  }
  return shape;
}

std::vector<ValueType> infer_where(const OpInputs& in) {
  in.expect_count(3);
  expect_one_float_type(in, 3);
  const Shape shape = common_shape(in);
  for (const ValueType& type : in.types) {
    if (type.shape == shape || type.shape.elements() == 1) continue;
    in.fail("takes inputs of shape " + shape.str() + " or of one element, not " + type.shape.str());
  }
  return {{in.dtype(0), shape}};
}

std::vector<Gradient> where_gradient(const Node& node, std::span<const Value> dy) {
  const Value condition = node.input(0), zero = scalar_like(dy[0], 0);
  const Value a = where(condition, dy[0], zero), b = where(condition, zero, dy[0]);
  return {{}, sum_to_shape(a, node.input(1).shape()), sum_to_shape(b, node.input(2).shape())};
}

Value broadcast_to(Value x, const Shape& shape) {
  if (x.shape() == shape || x.shape().elements() == 1) return x;
  return x.graph().apply(
      "broadcast_to", {x},
      {{"shape", std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end())}});
}

}  // namespace

void add_where_ops(OpRegistry& ops) {
  Op op;
  op.name = "where";
  op.infer = infer_where;
  op.gradient = where_gradient;
  op.cost = fusable_cost("where");
  op.in_place = {0, 1, 2};
  ops.add(std::move(op));
}

Value where(Value condition, Value a, Value b) {
  if (condition.dtype() != a.dtype()) condition = cast(cast(condition, DType::kBool), a.dtype());
  std::array<Value, 3> operands = {condition, a, b};
  const std::optional<Shape> choices = broadcast_shape(a.shape(), b.shape());
  const std::optional<Shape> all =
      choices ? broadcast_shape(*choices, condition.shape()) : std::nullopt;
  if (all) {
    for (Value& operand : operands) operand = broadcast_to(operand, *all);
  }
  return a.graph().add("where", operands).output(0);
}

}  // namespace paceline
