#include <fmt/format.h>

#include <algorithm>

#include "ops/broadcast_shape.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(std::size_t(rank), 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t of_a = i <= a.rank() ? a[-i] : 1;
    const std::int64_t of_b = i <= b.rank() ? b[-i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) return std::nullopt;
    dims[std::size_t(rank - i)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(dims);
}

Value sum_to_shape(Value gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const int extra = gradient.shape().rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int i = 0; i < gradient.shape().rank(); ++i) {
    if (i < extra || shape[i - extra] != gradient.shape()[i]) axes.push_back(i);
  }
  if (!axes.empty()) gradient = reduce_sum(gradient, axes, true);
  return gradient.shape() == shape ? gradient : reshape(gradient, shape.dims());
}

namespace {

std::vector<ValueType> infer_broadcast_to(const OpInputs& in) {
  in.expect_count(1);
  const Shape shape(in.attributes.get<std::vector<std::int64_t>>("shape"));
  if (broadcast_shape(in.shape(0), shape) != shape) {
    in.fail(fmt::format("cannot broadcast {} to {}", in.shape(0).str(), shape.str()));
  }
  return {{in.dtype(0), shape}};
}

}  // namespace

void add_broadcast_ops(OpRegistry& ops) {
  Op op;
  op.name = "broadcast_to";
  op.infer = infer_broadcast_to;
  op.gradient = [](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    return {sum_to_shape(dy[0], node.input(0).shape())};
  };
  op.cost = elementwise_cost(0);
  ops.add(std::move(op));
}

}  // namespace paceline
