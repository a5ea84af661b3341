#include "kernels/cpu/broadcast_loop.h"

namespace paceline {

namespace {

/// The stride of `shape` for the output's dimension `from_last`, 0 where it repeats.
std::int64_t stride_of(const Shape& shape, int from_last) {
  if (from_last > shape.rank() || shape[-from_last] == 1) return 0;
  std::int64_t stride = 1;
  for (int i = 1; i < from_last; ++i) stride *= shape[-i];
  return stride;
}

}  // namespace

BroadcastLoop::BroadcastLoop(const Shape& out, const Shape& a, const Shape& b)
    : elements_(out.elements()) {
  for (int d = out.rank(); d >= 1; --d) {
    if (out[-d] != 1) add_dim(out[-d], stride_of(a, d), stride_of(b, d));
  }
  if (rank_ == 0) add_dim(1, 1, 1);
}

void BroadcastLoop::add_dim(std::int64_t size, std::int64_t a_stride, std::int64_t b_stride) {
  const bool joins =
      rank_ > 0 && a_strides_[last()] == a_stride * size && b_strides_[last()] == b_stride * size;
  if (!joins) ++rank_;
  dims_[last()] = joins ? dims_[last()] * size : size;
  a_strides_[last()] = a_stride;
  b_strides_[last()] = b_stride;
}

}  // namespace paceline
