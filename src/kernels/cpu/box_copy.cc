#include "kernels/cpu/box_copy.h"

#include <algorithm>

#include "base/check.h"
#include "base/copy_bytes.h"

namespace paceline {

namespace {
constexpr std::int64_t kCopyGrain = 16 * 1024;
// Columns of a transposed block: a cache line of floats.
constexpr std::int64_t kCopyBlock = 16;
}  // namespace

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

// The columns are the last dimension, so that writes are contiguous where they can be. When reads
// are not contiguous there, the rows are the dimension along which they are.
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
  const std::int64_t grain = std::max<std::int64_t>(1, kCopyGrain / column_.size);
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

}  // namespace paceline
