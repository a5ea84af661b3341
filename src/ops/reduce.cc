// Sums, means and maxima over axes.
#include <fmt/format.h>

#include <algorithm>

#include "graph/open_graph.h"
#include "ops/axis.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "ops/reduced_shape.h"
#include "paceline/ops.h"

namespace paceline {

std::vector<bool> reduced_axes(const Attributes& attributes, int rank) {
  const auto& axes = attributes.get<std::vector<std::int64_t>>("axes");
  std::vector<bool> reduced(std::size_t(rank), axes.empty());
  for (std::int64_t axis : axes) reduced[std::size_t(axis_from_start(axis, rank))] = true;
  return reduced;
}

namespace {

Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keep) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[std::size_t(i)]) dims.push_back(x[i]);
    if (reduced[std::size_t(i)] && keep) dims.push_back(1);
  }
  return Shape(dims);
}

std::vector<ValueType> infer_reduce(const OpInputs& in) {
  in.expect_count(1);
  expect_one_float_type(in, 1);
  const int rank = in.shape(0).rank();
  std::vector<bool> seen(std::size_t(rank), false);
  for (std::int64_t axis : in.attributes.get<std::vector<std::int64_t>>("axes")) {
    const std::size_t i = std::size_t(expect_axis(in, axis, rank));
    if (seen[i]) in.fail(fmt::format("names axis {} twice", axis));
    seen[i] = true;
  }
  const std::vector<bool> reduced = reduced_axes(in.attributes, rank);
  return {{in.dtype(0), reduced_shape(in.shape(0), reduced, in.attributes.get<bool>("keep"))}};
}

/// The mean and the maximum of no elements are not defined.
std::vector<ValueType> infer_reduce_some(const OpInputs& in) {
  std::vector<ValueType> types = infer_reduce(in);
  if (in.shape(0).elements() == 0 && types[0].shape.elements() > 0) {
    in.fail("has nothing to reduce in " + in.shape(0).str());
  }
  return types;
}

std::vector<std::int64_t> reduced_dimensions(const Node& node) {
  const Shape& x = node.input(0).shape();
  const std::vector<bool> reduced = reduced_axes(node.attributes(), x.rank());
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (reduced[std::size_t(i)]) dims.push_back(x[i]);
  }
  return dims;
}

/// Repeats `y`, which has the reduced shape, along the reduced dimensions.
Value spread(const Node& node, Value y) {
  const Shape& x = node.input(0).shape();
  const Shape kept = reduced_shape(x, reduced_axes(node.attributes(), x.rank()), true);
  if (y.shape() != kept) y = reshape(y, kept.dims());
  if (kept == x) return y;
  return y.graph().apply("broadcast_to", {y},
                         {{"shape", std::vector<std::int64_t>(x.dims().begin(), x.dims().end())}});
}

template <typename F>
Op reduction(const char* name, F derivative) {
  Op op;
  op.name = name;
  op.infer = infer_reduce;
  op.gradient = [derivative](const Node& node, std::span<const Value> dy) -> std::vector<Gradient> {
    return {derivative(node, dy[0])};
  };
  op.cost = [](const Node& node) {
    return Cost{double(node.input(0).shape().elements()), moved_bytes(node)};
  };
  return op;
}

/// Inputs: dy, x and y. dy and y have the reduced shape, with or without dimensions of size 1.
std::vector<ValueType> infer_max_gradient(const OpInputs& in) {
  in.expect_count(3);
  expect_one_float_type(in, in.types.size());
  if (in.shape(0) != in.shape(2)) in.fail("cannot pair " + shapes_str(in));
  return {in.types[1]};
}

}  // namespace

void add_reduce_ops(OpRegistry& ops) {
  ops.add(reduction("reduce_sum", [](const Node& node, Value dy) { return spread(node, dy); }));

  Op mean = reduction("reduce_mean", [](const Node& node, Value dy) {
    return spread(node, dy.graph().apply("scale", {dy}, mean_attributes(reduced_dimensions(node))));
  });
  mean.infer = infer_reduce_some;
  ops.add(std::move(mean));

  Op max = reduction("reduce_max", [](const Node& node, Value dy) {
    return dy.graph().apply("reduce_max_grad", {dy, node.input(0), node.output(0)},
                            node.attributes());
  });
  max.infer = infer_reduce_some;
  ops.add(std::move(max));

  Op max_gradient;
  max_gradient.name = "reduce_max_grad";
  max_gradient.infer = infer_max_gradient;
  max_gradient.no_gradient = "it is part of a gradient; second derivatives of it are not offered";
  max_gradient.cost = elementwise_cost(2);
  ops.add(std::move(max_gradient));
}

namespace {

Value reduce(const char* op, Value x, std::vector<std::int64_t> axes, bool keep) {
  return x.graph().apply(op, {x}, {{"axes", std::move(axes)}, {"keep", keep}});
}

}  // namespace

Value reduce_sum(Value x, std::vector<std::int64_t> axes, bool keep) {
  return reduce("reduce_sum", x, std::move(axes), keep);
}

Value reduce_mean(Value x, std::vector<std::int64_t> axes, bool keep) {
  return reduce("reduce_mean", x, std::move(axes), keep);
}

Value reduce_max(Value x, std::vector<std::int64_t> axes, bool keep) {
  return reduce("reduce_max", x, std::move(axes), keep);
}

}  // namespace paceline
