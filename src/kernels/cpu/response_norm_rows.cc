#include "kernels/cpu/response_norm_rows.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/response_norm_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/float_functions-inl.h"
#include "kernels/cpu/row_terms-inl.h"

#ifndef PACELINE_KERNELS_CPU_RESPONSE_NORM_ROWS_
#define PACELINE_KERNELS_CPU_RESPONSE_NORM_ROWS_
namespace paceline {
namespace {
constexpr std::int64_t kResponseNormRows = 8;  // in a block
}  // namespace
}  // namespace paceline
#endif

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

// Computes s^−beta where beta is ¾.
struct ThreeQuarters {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s) const {
    const V root = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(s));
    return hn::Mul(root, hn::Sqrt(root));
  }
};
struct AnyPower {
  float beta;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V s) const {
    return exp_of(d, hn::Mul(hn::Set(d, -beta), log_of(d, s)));
  }
};

// Returns the sums around the elements from c on; `padded` has `radius` zeros before and after.
template <class D>
HWY_INLINE hn::Vec<D> sum_around(D d, const float* padded, std::int64_t c, std::int64_t radius) {
  auto sum = hn::LoadU(d, padded + c);
  for (std::int64_t k = 1; k <= 2 * radius; ++k) sum = hn::Add(sum, hn::LoadU(d, padded + c + k));
  return sum;
}

// Returns bias + alpha·Σ x², from padded squares.
template <class D>
HWY_INLINE hn::Vec<D> base_of(D d, const float* squares, std::int64_t c,
                              const ResponseNormNumbers& n) {
  return hn::MulAdd(hn::Set(d, n.alpha), sum_around(d, squares, c, n.radius), hn::Set(d, n.bias));
}

// All rows of a block go through a step before the next step begins. A sum around an element loads
// values that were just stored, and a load that overlaps two stores waits until both have reached
// the cache. With blocks, they have reached it by then.
struct RowBlock {
  std::int64_t begin, end;
};
template <class F>
HWY_INLINE void for_row_blocks(std::int64_t rows, const F& f) {
  for (std::int64_t begin = 0; begin < rows; begin += kResponseNormRows) {
    f(RowBlock{begin, std::min(rows, begin + kResponseNormRows)});
  }
}

// Rows of `channels` floats with `radius` zeros before and after.
struct PaddedRows {
  float* memory;
  std::int64_t channels, radius;
  std::int64_t stride() const { return channels + 2 * radius; }
  void clear() const { std::fill_n(memory, kResponseNormRows * stride(), 0.0f); }
  /// Returns the values that sum_around reads for row `r` of a block.
  float* row(std::int64_t r) const { return memory + r * stride(); }
  float* elements(std::int64_t r) const { return row(r) + radius; }
};

HWY_INLINE void put_squares(const float* x, RowBlock block, const PaddedRows& squares) {
  const std::int64_t channels = squares.channels;
  for (std::int64_t r = block.begin; r < block.end; ++r) {
    for_vectors(channels, [&](auto d, std::int64_t c) {
      const auto value = hn::LoadU(d, x + r * channels + c);
      hn::StoreU(hn::Mul(value, value), d, squares.elements(r - block.begin) + c);
    });
  }
}

template <class Power>
HWY_INLINE void norm_rows(const float* x, std::int64_t rows, std::int64_t channels,
                          const ResponseNormNumbers& n, const Power& power, float* scratch,
                          float* y) {
  const PaddedRows squares{scratch, channels, n.radius};
  squares.clear();
  for_row_blocks(rows, [&](RowBlock block) {
    put_squares(x, block, squares);
    for (std::int64_t r = block.begin; r < block.end; ++r) {
      for_vectors(channels, [&](auto d, std::int64_t c) {
        const auto base = base_of(d, squares.row(r - block.begin), c, n);
        const std::int64_t i = r * channels + c;
        hn::StoreU(hn::Mul(hn::LoadU(d, x + i), power(d, base)), d, y + i);
      });
    }
  });
}

// With base s and its power p, dx = dy·p − 2·alpha·beta·x·Σ dy·x·p/s.
template <class Power>
HWY_INLINE void norm_rows_grad(const float* dy, const float* x, std::int64_t rows,
                               std::int64_t channels, const ResponseNormNumbers& n,
                               const Power& power, float* scratch, float* dx) {
  const PaddedRows squares{scratch, channels, n.radius};
  const PaddedRows terms{scratch + kResponseNormRows * squares.stride(), channels, n.radius};
  squares.clear();
  terms.clear();
  const float factor = -2 * n.alpha * n.beta;
  for_row_blocks(rows, [&](RowBlock block) {
    put_squares(x, block, squares);
    for (std::int64_t r = block.begin; r < block.end; ++r) {
      for_vectors(channels, [&](auto d, std::int64_t c) {
        const std::int64_t i = r * channels + c;
        const auto base = base_of(d, squares.row(r - block.begin), c, n);
        const auto own = hn::Mul(hn::LoadU(d, dy + i), power(d, base));
        hn::StoreU(own, d, dx + i);
        const auto term = hn::Div(hn::Mul(own, hn::LoadU(d, x + i)), base);
        hn::StoreU(term, d, terms.elements(r - block.begin) + c);
      });
    }
    for (std::int64_t r = block.begin; r < block.end; ++r) {
      for_vectors(channels, [&](auto d, std::int64_t c) {
        const std::int64_t i = r * channels + c;
        const auto sum = sum_around(d, terms.row(r - block.begin), c, n.radius);
        const auto value = hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + i));
        hn::StoreU(hn::MulAdd(value, sum, hn::LoadU(d, dx + i)), d, dx + i);
      });
    }
  });
}

void ResponseNormRows(const float* x, std::int64_t rows, std::int64_t channels,
                      const ResponseNormNumbers& n, float* scratch, float* y) {
  if (n.beta == 0.75f) return norm_rows(x, rows, channels, n, ThreeQuarters{}, scratch, y);
  norm_rows(x, rows, channels, n, AnyPower{n.beta}, scratch, y);
}

void ResponseNormRowsGrad(const float* dy, const float* x, std::int64_t rows, std::int64_t channels,
                          const ResponseNormNumbers& n, float* scratch, float* dx) {
  if (n.beta == 0.75f) {
    return norm_rows_grad(dy, x, rows, channels, n, ThreeQuarters{}, scratch, dx);
  }
  norm_rows_grad(dy, x, rows, channels, n, AnyPower{n.beta}, scratch, dx);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(ResponseNormRows);
HWY_EXPORT(ResponseNormRowsGrad);
}  // namespace

std::int64_t response_norm_scratch(std::int64_t channels, std::int64_t radius) {
  return 2 * kResponseNormRows * (channels + 2 * radius);
}

void response_norm_rows(const float* x, std::int64_t rows, std::int64_t channels,
                        const ResponseNormNumbers& numbers, float* scratch, float* y) {
  HWY_DYNAMIC_DISPATCH(ResponseNormRows)(x, rows, channels, numbers, scratch, y);
}
void response_norm_rows_grad(const float* dy, const float* x, std::int64_t rows,
                             std::int64_t channels, const ResponseNormNumbers& numbers,
                             float* scratch, float* dx) {
  HWY_DYNAMIC_DISPATCH(ResponseNormRowsGrad)(dy, x, rows, channels, numbers, scratch, dx);
}

}  // namespace paceline
#endif  // HWY_ONCE
