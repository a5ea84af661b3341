// Ops that move elements of any type and compute nothing.
#include <array>
#include <utility>

#include "kernels/cuda/cuda_work.h"
#include "ops/axis.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

// Element i of a box has an index in each dimension, from which its places in the input and in the
// output follow.
const char* const kLayoutSource = R"(
struct Box {
  i64 rank, size[8], from[8], to[8];
};
template <typename T>
__device__ void move(T* to, const T* from, i64 n, const Box& box) {
  EACH(i, n) {
    i64 rest = i, a = 0, b = 0;
    for (int d = (int)box.rank - 1; d >= 0; --d) {
      const i64 index = rest % box.size[d];
      rest /= box.size[d];
      a += index * box.from[d];
      b += index * box.to[d];
    }
    to[b] = from[a];
  }
}
extern "C" __global__ void move_1(unsigned char* to, const unsigned char* from, i64 a, i64 b, i64 n, Box box) {
  move(to + b, from + a, n, box);
}
extern "C" __global__ void move_2(unsigned short* to, const unsigned short* from, i64 a, i64 b, i64 n, Box box) {
  move(to + b, from + a, n, box);
}
extern "C" __global__ void move_4(unsigned* to, const unsigned* from, i64 a, i64 b, i64 n, Box box) {
  move(to + b, from + a, n, box);
}
extern "C" __global__ void move_8(u64* to, const u64* from, i64 a, i64 b, i64 n, Box box) {
  move(to + b, from + a, n, box);
}
extern "C" __global__ void clear(unsigned char* to, i64 n) { EACH(i, n) to[i] = 0; }
)";

struct Box {
  std::int64_t rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> size{}, from{}, to{};
};
static_assert(Shape::kMaxRank == 8);

using Dims = std::vector<std::int64_t>;

Dims strides_of(const Shape& shape) {
  Dims strides(std::size_t(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d) {
    strides[std::size_t(d)] = strides[std::size_t(d) + 1] * shape[d + 1];
  }
  return strides;
}

class Mover {
 public:
  explicit Mover(DType dtype) : size_(size_of(dtype)) { work_.source = kLayoutSource; }

  /// Adds a launch that copies a box of this shape. In the input, the box begins at element `a` and
  /// has the strides `from_strides`; in the output, it begins at element `b` and has `to_strides`.
  void move(CudaArgument to, CudaArgument from, std::int64_t a, std::int64_t b, const Shape& shape,
            const Dims& from_strides, const Dims& to_strides) {
    Box box;
    box.rank = shape.rank();
    for (int d = 0; d < shape.rank(); ++d) {
      const auto k = std::size_t(d);
      box.size[k] = shape[d];
      box.from[k] = from_strides[k];
      box.to[k] = to_strides[k];
    }
    const std::int64_t n = shape.elements();
    work_.launches.push_back(
        {function(),
         blocks_for(n),
         {std::move(to), std::move(from), CudaArgument::integer(a), CudaArgument::integer(b),
          CudaArgument::integer(n), CudaArgument::of(box)}});
  }
  void clear(const Shape& shape) {
    const std::int64_t bytes = shape.elements() * std::int64_t(size_);
    work_.launches.push_back(
        {"clear", blocks_for(bytes), {CudaArgument::output(0), CudaArgument::integer(bytes)}});
  }
  CudaWork take() { return std::move(work_); }

 private:
  const char* function() const {
    return size_ == 1 ? "move_1" : size_ == 2 ? "move_2" : size_ == 4 ? "move_4" : "move_8";
  }

  const std::size_t size_;
  CudaWork work_;
};

std::int64_t offset_of(const Dims& corner, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < corner.size(); ++d) offset += corner[d] * strides[d];
  return offset;
}

// The stride of a repeated dimension is 0: all its indices read the first element.
Dims broadcast_strides(const Shape& from, const Shape& to) {
  const Dims own = strides_of(from);
  Dims strides(std::size_t(to.rank()), 0);
  for (int d = 1; d <= from.rank(); ++d) {
    if (from[-d] != 1) strides[strides.size() - std::size_t(d)] = own[own.size() - std::size_t(d)];
  }
  return strides;
}

CudaWork concat(const Node& node) {
  const Shape& whole = node.outputs()[0].shape;
  Mover mover(node.outputs()[0].dtype);
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < node.inputs().size(); ++k) {
    const Shape& part = node.input(int(k)).shape();
    const Dims strides = strides_of(whole);
    mover.move(CudaArgument::output(0), CudaArgument::input(k), 0,
               offset * strides[std::size_t(axis_of(node))], part, strides_of(part), strides);
    offset += part[axis_of(node)];
  }
  return mover.take();
}

CudaWork split(const Node& node) {
  const Dims strides = strides_of(node.input(0).shape());
  Mover mover(node.outputs()[0].dtype);
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < node.outputs().size(); ++k) {
    const Shape& part = node.outputs()[k].shape;
    mover.move(CudaArgument::output(k), CudaArgument::input(0),
               offset * strides[std::size_t(axis_of(node))], 0, part, strides, strides_of(part));
    offset += part[axis_of(node)];
  }
  return mover.take();
}

}  // namespace

std::optional<CudaWork> layout_work(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "concat") return concat(node);
  if (op == "split") return split(node);
  const bool one = op == "broadcast_to" || op == "reshape" || op == "stop_gradient" ||
                   op == "transpose" || op == "slice" || op == "pad";
  if (!one) return {};
  const Shape &x = node.input(0).shape(), &y = node.outputs()[0].shape;
  const CudaArgument from = CudaArgument::input(0), to = CudaArgument::output(0);
  Mover mover(node.outputs()[0].dtype);
  if (op == "broadcast_to") {
    mover.move(to, from, 0, 0, y, broadcast_strides(x, y), strides_of(y));
  } else if (op == "transpose") {
    const Dims &permutation = node.attributes().get<Dims>("permutation"), own = strides_of(x);
    Dims strides;
    for (const std::int64_t d : permutation) strides.push_back(own[std::size_t(d)]);
    mover.move(to, from, 0, 0, y, strides, strides_of(y));
  } else if (op == "slice") {
    const Dims strides = strides_of(x);
    mover.move(to, from, offset_of(node.attributes().get<Dims>("begin"), strides), 0, y, strides,
               strides_of(y));
  } else if (op == "pad") {
    const Dims strides = strides_of(y);
    mover.clear(y);
    mover.move(to, from, 0, offset_of(node.attributes().get<Dims>("before"), strides), x,
               strides_of(x), strides);
  } else {
    mover.move(to, from, 0, 0, Shape{y.elements()}, {1}, {1});
  }
  return mover.take();
}

}  // namespace paceline::cuda
