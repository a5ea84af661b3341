#include "kernels/cpu/response_norm_rows.h"

#include <algorithm>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/response_norm_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/float_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

// s^−beta.
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

// Calls f(d, c) for each vector of channels, from channel c on.
template <class F>
HWY_INLINE void for_row_vectors(std::int64_t channels, const F& f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::int64_t lanes = std::int64_t(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) f(d, c);
  for (; c < channels; ++c) f(one, c);
}

// The sums of the elements around those from c on; `padded` has `radius` zeros before and after.
template <class D>
HWY_INLINE hn::Vec<D> sum_around(D d, const float* padded, std::int64_t c, std::int64_t radius) {
  auto sum = hn::LoadU(d, padded + c);
  for (std::int64_t k = 1; k <= 2 * radius; ++k) sum = hn::Add(sum, hn::LoadU(d, padded + c + k));
  return sum;
}

// bias + alpha·Σ x², from padded squares.
template <class D>
HWY_INLINE hn::Vec<D> base_of(D d, const float* squares, std::int64_t c,
                              const ResponseNormNumbers& n) {
  return hn::MulAdd(hn::Set(d, n.alpha), sum_around(d, squares, c, n.radius), hn::Set(d, n.bias));
}

HWY_INLINE void put_squares(const float* x, std::int64_t channels, float* squares) {
  for_row_vectors(channels, [&](auto d, std::int64_t c) {
    const auto value = hn::LoadU(d, x + c);
    hn::StoreU(hn::Mul(value, value), d, squares + c);
  });
}

template <class Power>
HWY_INLINE void norm_rows(const float* x, std::int64_t rows, std::int64_t channels,
                          const ResponseNormNumbers& n, const Power& power, float* scratch,
                          float* y) {
  std::fill_n(scratch, channels + 2 * n.radius, 0.0f);
  for (std::int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
    put_squares(x, channels, scratch + n.radius);
    for_row_vectors(channels, [&](auto d, std::int64_t c) {
      hn::StoreU(hn::Mul(hn::LoadU(d, x + c), power(d, base_of(d, scratch, c, n))), d, y + c);
    });
  }
}

// With s the base and p its power: dx = dy·p − 2·alpha·beta·x·Σ dy·x·p/s.
template <class Power>
HWY_INLINE void norm_rows_grad(const float* dy, const float* x, std::int64_t rows,
                               std::int64_t channels, const ResponseNormNumbers& n,
                               const Power& power, float* scratch, float* dx) {
  float* const terms = scratch + channels + 2 * n.radius;
  std::fill_n(scratch, 2 * (channels + 2 * n.radius), 0.0f);
  const float factor = -2 * n.alpha * n.beta;
  for (std::int64_t r = 0; r < rows; ++r, x += channels, dy += channels, dx += channels) {
    put_squares(x, channels, scratch + n.radius);
    for_row_vectors(channels, [&](auto d, std::int64_t c) {
      const auto base = base_of(d, scratch, c, n);
      const auto own = hn::Mul(hn::LoadU(d, dy + c), power(d, base));
      hn::StoreU(own, d, dx + c);
      hn::StoreU(hn::Div(hn::Mul(own, hn::LoadU(d, x + c)), base), d, terms + n.radius + c);
    });
    for_row_vectors(channels, [&](auto d, std::int64_t c) {
      const auto sum = sum_around(d, terms, c, n.radius);
      const auto value = hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + c));
      hn::StoreU(hn::MulAdd(value, sum, hn::LoadU(d, dx + c)), d, dx + c);
    });
  }
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
  return 2 * (channels + 2 * radius);
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
