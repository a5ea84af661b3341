#include "kernels/cpu/norm_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/row_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE hn::Vec<D> normalized(D d, const float* x, RowScale row, std::size_t i) {
  const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, row.mean));
  return hn::Mul(distance, hn::Set(d, row.scale));
}

template <class D>
HWY_INLINE hn::Vec<D> product_at(D d, const float* a, const float* b, std::size_t i) {
  return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
}

struct SquaredDistanceTerm {
  const float* x;
  float center;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, center));
    return hn::Mul(distance, distance);
  }
};

struct NormalizedTerm {
  const float *x, *gains, *offsets;
  RowScale row;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto unit = normalized(d, x, row, i);
    return hn::MulAdd(unit, hn::LoadU(d, gains + i), hn::LoadU(d, offsets + i));
  }
};

/// Returns g, and adds to the gradients of gains and offsets on the way.
struct SummedGradientTerm {
  const float *dy, *x, *gains;
  RowScale row;
  float *gain_sums, *offset_sums;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto gradient = hn::LoadU(d, dy + i), unit = normalized(d, x, row, i);
    hn::StoreU(hn::MulAdd(gradient, unit, hn::LoadU(d, gain_sums + i)), d, gain_sums + i);
    hn::StoreU(hn::Add(gradient, hn::LoadU(d, offset_sums + i)), d, offset_sums + i);
    return hn::Mul(gradient, hn::LoadU(d, gains + i));
  }
};

struct GradientProductTerm {
  const float *dy, *x, *gains;
  RowScale row;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    return hn::Mul(product_at(d, dy, gains, i), normalized(d, x, row, i));
  }
};

struct NormGradientTerm {
  const float *dy, *x, *gains;
  RowScale row;
  float gradient, product;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto unit = normalized(d, x, row, i);
    const auto rest = hn::Sub(product_at(d, dy, gains, i), hn::Set(d, gradient));
    return hn::Mul(hn::NegMulAdd(unit, hn::Set(d, product), rest), hn::Set(d, row.scale));
  }
};

double SumSquaredDistances(const float* x, float center, std::size_t n) {
  return sum_terms(n, SquaredDistanceTerm{x, center});
}
void NormalizeRow(const float* x, RowScale row, const float* gains, const float* offsets, float* y,
                  std::size_t n) {
  store_values(y, n, NormalizedTerm{x, gains, offsets, row});
}
NormSums SumsOfNorm(const float* dy, const float* x, const float* gains, RowScale row,
                    float* gain_sums, float* offset_sums, std::size_t n) {
  const double gradient =
      sum_terms(n, SummedGradientTerm{dy, x, gains, row, gain_sums, offset_sums});
  return {gradient, sum_terms(n, GradientProductTerm{dy, x, gains, row})};
}
void NormGradient(const float* dy, const float* x, const float* gains, RowScale row, NormSums means,
                  float* dx, std::size_t n) {
  store_values(dx, n,
               NormGradientTerm{dy, x, gains, row, float(means.gradient), float(means.product)});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(SumSquaredDistances);
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(SumsOfNorm);
HWY_EXPORT(NormGradient);
}  // namespace

double sum_squared_distances(const float* x, float center, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumSquaredDistances)(x, center, std::size_t(n));
}
void normalize_row(const float* x, RowScale row, const float* gains, const float* offsets, float* y,
                   std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(NormalizeRow)(x, row, gains, offsets, y, std::size_t(n));
}
NormSums norm_sums(const float* dy, const float* x, const float* gains, RowScale row,
                   float* gain_sums, float* offset_sums, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumsOfNorm)(dy, x, gains, row, gain_sums, offset_sums,
                                          std::size_t(n));
}
void norm_gradient(const float* dy, const float* x, const float* gains, RowScale row,
                   NormSums means, float* dx, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(NormGradient)(dy, x, gains, row, means, dx, std::size_t(n));
}

}  // namespace paceline
#endif  // HWY_ONCE
