// Walks two operands under NumPy broadcasting in runs of contiguous output.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "paceline/shape.h"

namespace paceline {

/// Dimensions that are contiguous in both operands, or repeat in both, are joined: operands of one
/// shape become a single run.
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& out, const Shape& a, const Shape& b);

  std::int64_t elements() const { return elements_; }
  /// Within a run: is it one element of the operand again and again, or the next ones?
  bool a_repeats() const { return a_strides_[last()] == 0; }
  bool b_repeats() const { return b_strides_[last()] == 0; }

  /// Calls f(position, offset in a, offset in b, n) for runs that make up [begin, end).
  template <typename F>
  void for_runs(std::int64_t begin, std::int64_t end, F&& f) const {
    const std::int64_t run = dims_[last()];
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t within = i % run;
      const std::int64_t n = std::min(run - within, end - i);
      std::int64_t a = within * a_strides_[last()], b = within * b_strides_[last()];
      std::int64_t rest = i / run;
      for (std::size_t d = last(); d-- > 0;) {
        const std::int64_t index = rest % dims_[d];
        rest /= dims_[d];
        a += index * a_strides_[d];
        b += index * b_strides_[d];
      }
      f(i, a, b, n);
      i += n;
    }
  }

 private:
  using Numbers = std::array<std::int64_t, Shape::kMaxRank + 1>;
  std::size_t last() const { return rank_ - 1; }
  void add_dim(std::int64_t size, std::int64_t a_stride, std::int64_t b_stride);

  std::int64_t elements_;
  std::size_t rank_ = 0;
  Numbers dims_{}, a_strides_{}, b_strides_{};
};

}  // namespace paceline
