// Copies a box of elements from one strided place to another: all that transpose, concat, split,
// slice, pad and broadcast_to do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "paceline/shape.h"

namespace paceline {

using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Returns the strides of a row-major tensor.
Strides row_major_strides(const Shape& shape);

class BoxCopy {
 public:
  /// Strides in elements of `element_size` bytes (1, 2, 4 or 8), one a dimension of `box`; a source
  /// stride of 0 repeats.
  BoxCopy(const Shape& box, const Strides& to, const Strides& from, std::size_t element_size);

  /// The places do not overlap.
  void run(std::byte* to, const std::byte* from, ThreadPool& pool) const;

 private:
  struct Dim {
    std::int64_t size = 1, to = 0, from = 0;
  };
  void add_dim(const Dim& dim);
  void order_for_cache();
  template <typename T>
  void run_as(T* to, const T* from, ThreadPool& pool) const;
  /// Rows [begin, end) of the plane at `to` and `from`.
  template <typename T>
  void copy_rows(T* to, const T* from, std::int64_t begin, std::int64_t end) const;

  std::size_t element_size_;
  std::size_t rank_ = 0;
  std::array<Dim, Shape::kMaxRank + 2> dims_{};
  // The two dimensions that a tile walks; dims_ are the others.
  Dim row_, column_;
};

}  // namespace paceline
