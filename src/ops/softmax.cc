#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "ops/axis.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

// The op works along the last dimension; for other dimensions, softmax() transposes.
std::vector<ValueType> infer_softmax(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  if (in.shape(0).rank() == 0) in.fail("x is a scalar; at least one dimension is needed");
  if (in.shape(0)[-1] == 0) in.fail(fmt::format("rows of {} are empty", in.shape(0).str()));
  return {in.types[0]};
}

// Inputs: dy and y. Output: dx.
std::vector<ValueType> infer_softmax_grad(const OpInputs& in) {
  in.expect_count(2);
  expect_one_float_type(in, 2);
  if (in.shape(0) != in.shape(1)) in.fail("cannot pair " + shapes_str(in));
  return {in.types[0]};
}

std::vector<std::int64_t> swapped_with_last(int axis, int rank) {
  std::vector<std::int64_t> permutation(std::size_t(rank), 0);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[std::size_t(axis)], permutation.back());
  return permutation;
}

}  // namespace

void add_softmax_ops(OpRegistry& ops) {
  Op op;
  op.name = "softmax";
  op.infer = infer_softmax;
  op.gradient = [](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    return {dy[0].graph().apply("softmax_grad", {dy[0], node.output(0)})};
  };
  op.cost = elementwise_cost(12);
  op.in_place = {0};
  ops.add(std::move(op));

  Op grad;
  grad.name = "softmax_grad";
  grad.infer = infer_softmax_grad;
  grad.no_gradient = "second derivatives are not implemented";
  grad.cost = elementwise_cost(4);
  grad.in_place = {0};
  ops.add(std::move(grad));
}

Value softmax(Value x, int axis) {
  const int rank = x.shape().rank();
  if (rank > 0 && (axis < -rank || axis >= rank)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[softmax] has no axis {} in {}", axis, x.shape().str()));
  }
  const int from_start = rank == 0 ? 0 : axis_from_start(axis, rank);
  if (from_start >= rank - 1) return x.graph().apply("softmax", {x});
  const std::vector<std::int64_t> swap = swapped_with_last(from_start, rank);
  return transpose(x.graph().apply("softmax", {transpose(x, swap)}), swap);
}

}  // namespace paceline
