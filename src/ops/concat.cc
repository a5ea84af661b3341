// concat and split, each the other's gradient.
#include <fmt/format.h>

#include "ops/axis.h"
#include "ops/builtin_ops.h"
#include "ops/expect.h"
#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline {

namespace {

std::vector<std::int64_t> dims_of(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

std::vector<ValueType> infer_concat(const OpInputs& in) {
  if (in.types.empty()) in.fail("needs at least one input");
  const int axis = expect_axis(in, in.attributes.get<std::int64_t>("axis"), in.shape(0).rank());
  std::vector<std::int64_t> dims = dims_of(in.shape(0));
  for (std::size_t i = 1; i < in.types.size(); ++i) {
    std::vector<std::int64_t> other = dims_of(in.types[i].shape);
    const bool same_rank = other.size() == dims.size();
    const std::int64_t size = same_rank ? other[std::size_t(axis)] : 0;
    if (same_rank) other[std::size_t(axis)] = dims[std::size_t(axis)];
    if (other != dims || in.types[i].dtype != in.dtype(0)) {
      in.fail(fmt::format("cannot join {} with {} along axis {}", in.types[0].str(),
                          in.types[i].str(), axis));
    }
    dims[std::size_t(axis)] += size;
  }
  return {{in.dtype(0), Shape(dims)}};
}

std::vector<Gradient> gradient_of_concat(const Node& node, std::span<const Value> dy) {
  const int axis = axis_of(node);
  std::vector<std::int64_t> begin(std::size_t(dy[0].shape().rank()), 0);
  std::vector<Gradient> gradients;
  for (const Value& input : node.inputs()) {
    gradients.push_back(slice(dy[0], begin, dims_of(input.shape())));
    begin[std::size_t(axis)] += input.shape()[axis];
  }
  return gradients;
}

std::vector<ValueType> infer_split(const OpInputs& in) {
  in.expect_count(1);
  const int axis = expect_axis(in, in.attributes.get<std::int64_t>("axis"), in.shape(0).rank());
  const std::int64_t parts = in.attributes.get<std::int64_t>("parts");
  std::vector<std::int64_t> dims = dims_of(in.shape(0));
  std::int64_t& size = dims[std::size_t(axis)];
  if (parts <= 0 || size % parts != 0) {
    in.fail(fmt::format("cannot cut {} into {} equal parts along axis {}", in.shape(0).str(), parts,
                        axis));
  }
  size /= parts;
  return std::vector<ValueType>(std::size_t(parts), {in.dtype(0), Shape(dims)});
}

std::vector<Gradient> gradient_of_split(const Node& node, std::span<const Value> dy) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const ValueType& type = node.outputs()[i];
    parts.push_back(dy[i] ? dy[i] : node.graph().constant(Tensor(type.dtype, type.shape), "zeros"));
  }
  return {concat(parts, int(node.attributes().get<std::int64_t>("axis")))};
}

}  // namespace

void add_concat_ops(OpRegistry& ops) {
  Op concat;
  concat.name = "concat";
  concat.infer = infer_concat;
  concat.gradient = gradient_of_concat;
  concat.cost = elementwise_cost(0);
  concat.concat_offset = [](const Node& node, int input) {
    const Shape& whole = node.outputs()[0].shape;
    const int axis = axis_of(node);
    std::vector<std::int64_t> begin(std::size_t(whole.rank()), 0);
    for (int i = 0; i < input; ++i) begin[std::size_t(axis)] += node.input(i).shape()[axis];
    return first_of_part(whole, begin, node.input(input).shape().dims());
  };
  ops.add(std::move(concat));

  Op split;
  split.name = "split";
  split.infer = infer_split;
  split.gradient = gradient_of_split;
  split.cost = [](const Node& node) { return Cost{0, moved_bytes(node)}; };
  split.view = [](const Node& node, int output) {
    const Shape& part = node.outputs()[std::size_t(output)].shape;
    const int axis = axis_of(node);
    std::vector<std::int64_t> begin(std::size_t(part.rank()), 0);
    begin[std::size_t(axis)] = output * part[axis];
    return first_of_part(node.input(0).shape(), begin, part.dims());
  };
  ops.add(std::move(split));
}

Value concat(std::span<const Value> parts, int axis) {
  if (parts.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[concat] needs at least one input");
  }
  return parts[0].graph().add("concat", parts, {{"axis", std::int64_t{axis}}}).output(0);
}

std::vector<Value> split(Value x, int parts, int axis) {
  Node& node = x.graph().add("split", {&x, 1},
                             {{"parts", std::int64_t{parts}}, {"axis", std::int64_t{axis}}});
  std::vector<Value> outputs;
  outputs.reserve(node.outputs().size());
  for (int i = 0; i < parts; ++i) outputs.push_back(node.output(i));
  return outputs;
}

}  // namespace paceline
