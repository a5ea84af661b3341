// Ops that move elements of any type, as copies of boxes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "base/thread_pool.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "ops/axis.h"
#include "paceline/op.h"
#include "paceline/tensor.h"

namespace paceline {
namespace {

// Copies a box of elements from one strided place to another. Transpose, concat, split, slice, pad
// and broadcast_to need no more than this.

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Returns the strides of a row-major tensor.
Strides row_major_strides(const Shape& shape);

class BoxCopy {
 public:
  /// `to` and `from` have a stride for each dimension of `box`, in elements of `element_size` bytes
  /// (1, 2, 4 or 8). A stride of 0 in `from` repeats one element.
  BoxCopy(const Shape& box, const Strides& to, const Strides& from, std::size_t element_size);

  /// The boxes at `to` and `from` must not overlap.
  void run(std::byte* to, const std::byte* from, ThreadPool& pool) const;

 private:
  struct Dim {
    std::int64_t size = 1, to = 0, from = 0;
  };
  void add_dim(const Dim& dim);
  void order_for_cache();
  template <typename T>
  void run_as(T* to, const T* from, ThreadPool& pool) const;
  /// Copies rows [begin, end) of a plane that begins at `from` to the plane at `to`.
  template <typename T>
  void copy_rows(T* to, const T* from, std::int64_t begin, std::int64_t end) const;

  std::size_t element_size_;
  std::size_t rank_ = 0;
  std::array<Dim, Shape::kMaxRank + 2> dims_{};
  // The two dimensions that a tile walks; dims_ holds the others.
  Dim row_, column_;
};

// The columns of a transposed block: one cache line of floats.
constexpr std::int64_t kCopyBlock = 16;
Strides row_major_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[std::size_t(d)] = stride;
    stride *= shape[d];
  }
  return strides;
}

BoxCopy::BoxCopy(const Shape& box, const Strides& to, const Strides& from, std::size_t element_size)
    : element_size_(element_size) {
  for (int d = 0; d < box.rank(); ++d) {
    if (box[d] != 1) add_dim({box[d], to[std::size_t(d)], from[std::size_t(d)]});
  }
  order_for_cache();
}

void BoxCopy::add_dim(const Dim& dim) {
  if (rank_ > 0) {
    Dim& outer = dims_[rank_ - 1];
    if (outer.to == dim.to * dim.size && outer.from == dim.from * dim.size) {
      outer = {outer.size * dim.size, dim.to, dim.from};
      return;
    }
  }
  dims_[rank_++] = dim;
}

// The columns are the last dimension, so that writes are contiguous if possible. If reads are not
// contiguous in that dimension, the rows are the dimension in which they are.
void BoxCopy::order_for_cache() {
  if (rank_ > 0) column_ = dims_[--rank_];
  if (rank_ == 0) return;
  auto* row = &dims_[rank_ - 1];
  if (column_.from > 1) {
    const auto contiguous = std::find_if(dims_.begin(), dims_.begin() + std::ptrdiff_t(rank_),
                                         [](const Dim& dim) { return dim.from == 1; });
    if (contiguous != dims_.begin() + std::ptrdiff_t(rank_)) row = &*contiguous;
  }
  row_ = *row;
  std::move(row + 1, dims_.data() + rank_, row);
  --rank_;
}

void BoxCopy::run(std::byte* to, const std::byte* from, ThreadPool& pool) const {
  auto run_as_type = [&]<typename T>(T*) {
    run_as(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), pool);
  };
  switch (element_size_) {
    case 1:
      return run_as_type(static_cast<std::uint8_t*>(nullptr));
    case 2:
      return run_as_type(static_cast<std::uint16_t*>(nullptr));
    case 4:
      return run_as_type(static_cast<std::uint32_t*>(nullptr));
    default:
      break;
  }
  PACELINE_CHECK(element_size_ == 8);
  run_as_type(static_cast<std::uint64_t*>(nullptr));
}

template <typename T>
void BoxCopy::run_as(T* to, const T* from, ThreadPool& pool) const {
  std::int64_t planes = 1;
  for (std::size_t d = 0; d < rank_; ++d) planes *= dims_[d].size;
  if (planes * row_.size * column_.size == 0) return;
  const std::int64_t grain = std::max<std::int64_t>(1, kElementsGrain / column_.size);
  pool.parallel_for(planes * row_.size, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t plane = i / row_.size;
      const std::int64_t first = i % row_.size;
      const std::int64_t last = std::min(row_.size, first + end - i);
      std::int64_t to_plane = 0, from_plane = 0, rest = plane;
      for (std::size_t d = rank_; d-- > 0;) {
        to_plane += rest % dims_[d].size * dims_[d].to;
        from_plane += rest % dims_[d].size * dims_[d].from;
        rest /= dims_[d].size;
      }
      copy_rows(to + to_plane, from + from_plane, first, last);
      i += last - first;
    }
  });
}

template <typename T>
void BoxCopy::copy_rows(T* to, const T* from, std::int64_t begin, std::int64_t end) const {
  const std::int64_t n = column_.size;
  if (column_.to == 1 && column_.from <= 1) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* y = to + r * row_.to;
      const T* x = from + r * row_.from;
      if (column_.from == 0) {
        std::fill(y, y + n, *x);
      } else {
        copy_bytes(y, x, std::size_t(n) * sizeof(T));
      }
    }
    return;
  }
  for (std::int64_t block = 0; block < n; block += kCopyBlock) {
    const std::int64_t block_end = std::min(n, block + kCopyBlock);
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t c = block; c < block_end; ++c) {
        to[r * row_.to + c * column_.to] = from[r * row_.from + c * column_.from];
      }
    }
  }
}

using Dims = std::vector<std::int64_t>;

/// The copy of one box from an input to an output. `to` and `from` are offsets in elements.
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
