#include <fmt/format.h>

#include <numeric>

#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

using Permutation = std::vector<std::int64_t>;

void expect_permutation(const OpInputs& in, const Permutation& permutation) {
  const std::size_t rank = std::size_t(in.shape(0).rank());
  std::vector<bool> seen(rank, false);
  bool good = permutation.size() == rank;
  for (std::int64_t axis : permutation) {
    good = good && axis >= 0 && std::size_t(axis) < rank && !seen[std::size_t(axis)];
    if (good) seen[std::size_t(axis)] = true;
  }
  if (good) return;
  in.fail(fmt::format("cannot permute {} by ({})", in.shape(0).str(), fmt::join(permutation, ",")));
}

std::vector<ValueType> infer_transpose(const OpInputs& in) {
  in.expect_count(1);
  const auto& permutation = in.attributes.get<Permutation>("permutation");
  expect_permutation(in, permutation);
  std::vector<std::int64_t> dims;
  dims.reserve(permutation.size());
  for (std::int64_t axis : permutation) dims.push_back(in.shape(0)[int(axis)]);
  return {{in.dtype(0), Shape(dims)}};
}

std::vector<Gradient> gradient_of_transpose(const Node& node, std::span<const Value> dy) {
  const auto& permutation = node.attributes().get<Permutation>("permutation");
  Permutation inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[std::size_t(permutation[i])] = std::int64_t(i);
  }
  return {dy[0].graph().apply("transpose", {dy[0]}, {{"permutation", inverse}})};
}

}  // namespace

void add_transpose_ops(OpRegistry& ops) {
  Op op;
  op.name = "transpose";
  op.infer = infer_transpose;
  op.gradient = gradient_of_transpose;
  op.cost = elementwise_cost(0);
  ops.add(std::move(op));
}

Value transpose(Value x, std::vector<std::int64_t> permutation) {
  if (permutation.empty()) {
    permutation.resize(std::size_t(x.shape().rank()));
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  return x.graph().apply("transpose", {x}, {{"permutation", std::move(permutation)}});
}

}  // namespace paceline
