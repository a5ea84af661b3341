// Ops that move elements of any type, as copies of boxes.
#include <cstring>

#include "kernels/cpu/box_copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "ops/axis.h"
#include "paceline/op.h"

namespace paceline {

namespace {

using Dims = std::vector<std::int64_t>;

/// One box between an input and an output; offsets in elements.
struct Move {
  int input = 0, output = 0;
  std::int64_t to = 0, from = 0;
  BoxCopy copy;
};

class MoveKernel : public Kernel {
 public:
  MoveKernel(std::vector<Move> moves, std::size_t element_size, bool clear, ThreadPool& pool)
      : moves_(std::move(moves)),
        element_size_(std::int64_t(element_size)),
        clear_(clear),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    const TensorView& y = call.outputs[0];
    if (clear_ && y.bytes() > 0) std::memset(y.data, 0, y.bytes());
    for (const Move& move : moves_) {
      std::byte* to = call.outputs[std::size_t(move.output)].as<std::byte>();
      const std::byte* from = call.inputs[std::size_t(move.input)].as<std::byte>();
      move.copy.run(to + move.to * element_size_, from + move.from * element_size_, pool_);
    }
  }

 private:
  const std::vector<Move> moves_;
  const std::int64_t element_size_;
  const bool clear_;
  ThreadPool& pool_;
};

std::size_t element_size(const Node& node) { return size_of(node.outputs()[0].dtype); }

std::unique_ptr<Kernel> make_move(const Node& node, std::vector<Move> moves, ThreadPool& pool,
                                  bool clear = false) {
  return std::make_unique<MoveKernel>(std::move(moves), element_size(node), clear, pool);
}

std::unique_ptr<Kernel> make_broadcast_to(const Node& node, ThreadPool& pool) {
  const Shape& x = node.input(0).shape();
  const Shape& y = node.outputs()[0].shape;
  const Strides of_x = row_major_strides(x);
  Strides from{};
  for (int d = 1; d <= x.rank(); ++d) {
    if (x[-d] != 1) from[std::size_t(y.rank() - d)] = of_x[std::size_t(x.rank() - d)];
  }
  return make_move(node, {{0, 0, 0, 0, BoxCopy(y, row_major_strides(y), from, element_size(node))}},
                   pool);
}

std::unique_ptr<Kernel> make_transpose(const Node& node, ThreadPool& pool) {
  const Dims& permutation = node.attributes().get<Dims>("permutation");
  const Strides of_x = row_major_strides(node.input(0).shape());
  const Shape& y = node.outputs()[0].shape;
  Strides from{};
  for (std::size_t d = 0; d < permutation.size(); ++d) from[d] = of_x[std::size_t(permutation[d])];
  return make_move(node, {{0, 0, 0, 0, BoxCopy(y, row_major_strides(y), from, element_size(node))}},
                   pool);
}

std::unique_ptr<Kernel> make_concat(const Node& node, ThreadPool& pool) {
  const Shape& y = node.outputs()[0].shape;
  const Strides to = row_major_strides(y);
  const std::size_t axis = std::size_t(axis_of(node));
  std::vector<Move> moves;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Shape& part = node.inputs()[i].shape();
    moves.push_back(
        {int(i), 0, offset, 0, BoxCopy(part, to, row_major_strides(part), element_size(node))});
    offset += part[int(axis)] * to[axis];
  }
  return make_move(node, std::move(moves), pool);
}

std::unique_ptr<Kernel> make_split(const Node& node, ThreadPool& pool) {
  const Shape& x = node.input(0).shape();
  const Strides from = row_major_strides(x);
  const std::size_t axis = std::size_t(axis_of(node));
  std::vector<Move> moves;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Shape& part = node.outputs()[i].shape;
    moves.push_back(
        {0, int(i), 0, offset, BoxCopy(part, row_major_strides(part), from, element_size(node))});
    offset += part[int(axis)] * from[axis];
  }
  return make_move(node, std::move(moves), pool);
}

std::int64_t offset_of(const Dims& corner, const Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < corner.size(); ++d) offset += corner[d] * strides[d];
  return offset;
}

std::unique_ptr<Kernel> make_slice(const Node& node, ThreadPool& pool) {
  const Strides from = row_major_strides(node.input(0).shape());
  const Shape& y = node.outputs()[0].shape;
  const std::int64_t offset = offset_of(node.attributes().get<Dims>("begin"), from);
  return make_move(
      node, {{0, 0, 0, offset, BoxCopy(y, row_major_strides(y), from, element_size(node))}}, pool);
}

std::unique_ptr<Kernel> make_pad(const Node& node, ThreadPool& pool) {
  const Shape& x = node.input(0).shape();
  const Strides to = row_major_strides(node.outputs()[0].shape);
  const std::int64_t offset = offset_of(node.attributes().get<Dims>("before"), to);
  return make_move(node,
                   {{0, 0, offset, 0, BoxCopy(x, to, row_major_strides(x), element_size(node))}},
                   pool, true);
}

}  // namespace

void add_cpu_layout_kernels(KernelTable& table) {
  table.add("broadcast_to", &make_broadcast_to);
  table.add("transpose", &make_transpose);
  table.add("concat", &make_concat);
  table.add("split", &make_split);
  table.add("slice", &make_slice);
  table.add("pad", &make_pad);
}

}  // namespace paceline
