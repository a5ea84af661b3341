// Ops that move elements of any type and compute nothing. For each output element, its index in
// each dimension says which input element it copies.
#include <array>
#include <cstring>

#include "kernels/naive/broadcast_index.h"
#include "kernels/naive/naive_kernels.h"
#include "ops/axis.h"

namespace paceline {

namespace {

using Index = std::array<std::int64_t, Shape::kMaxRank>;
using Dims = std::vector<std::int64_t>;

Index index_of(std::int64_t position, const Shape& shape) {
  Index index{};
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[std::size_t(d)] = position % shape[d];
    position /= shape[d];
  }
  return index;
}

std::int64_t position_of(const Index& index, const Shape& shape) {
  std::int64_t position = 0;
  for (int d = 0; d < shape.rank(); ++d) position = position * shape[d] + index[std::size_t(d)];
  return position;
}

void copy_element(const TensorView& to, std::int64_t i, const TensorView& from, std::int64_t j) {
  const std::size_t size = size_of(to.dtype);
  std::memcpy(to.as<std::byte>() + std::size_t(i) * size,
              from.as<std::byte>() + std::size_t(j) * size, size);
}

void run_broadcast_to(const Node&, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    copy_element(y, i, x, broadcast_index(i, y.shape, x.shape));
  }
}

void run_reshape(const Node&, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  if (y.bytes() > 0) std::memmove(y.data, call.inputs[0].data, y.bytes());
}

void run_transpose(const Node& node, const KernelCall& call) {
  const Dims& permutation = node.attributes().get<Dims>("permutation");
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const Index to = index_of(i, y.shape);
    Index from{};
    for (std::size_t d = 0; d < permutation.size(); ++d) from[std::size_t(permutation[d])] = to[d];
    copy_element(y, i, x, position_of(from, x.shape));
  }
}

/// Copies `part` into or out of `whole`, where it lies at `offset` along `axis`.
void copy_part(const TensorView& whole, const TensorView& part, int axis, std::int64_t offset,
               bool into) {
  for (std::int64_t i = 0; i < part.shape.elements(); ++i) {
    Index index = index_of(i, part.shape);
    index[std::size_t(axis)] += offset;
    const std::int64_t j = position_of(index, whole.shape);
    into ? copy_element(whole, j, part, i) : copy_element(part, i, whole, j);
  }
}

void run_concat(const Node& node, const KernelCall& call) {
  const int axis = axis_of(node);
  std::int64_t offset = 0;
  for (const TensorView& part : call.inputs) {
    copy_part(call.outputs[0], part, axis, offset, true);
    offset += part.shape[axis];
  }
}

void run_split(const Node& node, const KernelCall& call) {
  const int axis = axis_of(node);
  std::int64_t offset = 0;
  for (const TensorView& part : call.outputs) {
    copy_part(call.inputs[0], part, axis, offset, false);
    offset += part.shape[axis];
  }
}

/// Copies `box` into or out of `whole`, where it lies at `corner`.
void copy_box(const TensorView& whole, const TensorView& box, const Dims& corner, bool into) {
  for (std::int64_t i = 0; i < box.shape.elements(); ++i) {
    Index index = index_of(i, box.shape);
    for (std::size_t d = 0; d < corner.size(); ++d) index[d] += corner[d];
    const std::int64_t j = position_of(index, whole.shape);
    into ? copy_element(whole, j, box, i) : copy_element(box, i, whole, j);
  }
}

void run_slice(const Node& node, const KernelCall& call) {
  copy_box(call.inputs[0], call.outputs[0], node.attributes().get<Dims>("begin"), false);
}

void run_pad(const Node& node, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  if (y.bytes() > 0) std::memset(y.data, 0, y.bytes());
  copy_box(y, call.inputs[0], node.attributes().get<Dims>("before"), true);
}

template <PlainKernel::Function function>
std::unique_ptr<Kernel> make(const Node& node, ThreadPool&) {
  return std::make_unique<PlainKernel>(node, function);
}

}  // namespace

void add_naive_layout_kernels(KernelTable& table) {
  table.add("broadcast_to", &make<&run_broadcast_to>);
  table.add("reshape", &make<&run_reshape>);
  table.add("stop_gradient", &make<&run_reshape>);
  table.add("transpose", &make<&run_transpose>);
  table.add("concat", &make<&run_concat>);
  table.add("split", &make<&run_split>);
  table.add("slice", &make<&run_slice>);
  table.add("pad", &make<&run_pad>);
}

}  // namespace paceline
