#include "kernels/cpu/loss_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/cpu/float_functions-inl.h"
#include "kernels/cpu/row_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

struct ExpTerm {
  const float* x;
  float shift, factor;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto e = exp_of_negative(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    return hn::Mul(e, hn::Set(d, factor));
  }
};

struct KeptExpTerm {
  float* y;
  const float* ahead;
  float shift;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    hwy::Prefetch(ahead + i);
    const auto e = exp_of_negative(d, hn::Sub(hn::LoadU(d, y + i), hn::Set(d, shift)));
    hn::StoreU(e, d, y + i);
    return e;
  }
};

struct SquareTerm {
  const float* x;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  }
};

struct ProductTerm {
  const float *a, *b;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  }
};

struct DifferenceTerm {
  const float *a, *b;
  float factor;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto difference = hn::Sub(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    return hn::Mul(difference, hn::Set(d, factor));
  }
};

struct SquaredDifferenceTerm {
  const float *a, *b;
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, std::size_t i) const {
    const auto difference = hn::Sub(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
    return hn::Mul(difference, difference);
  }
};

double SumExp(const float* x, float shift, std::size_t n) {
  return sum_terms(n, ExpTerm{x, shift, 1});
}
void ScaledExp(const float* x, float shift, float factor, float* y, std::size_t n) {
  store_values(y, n, ExpTerm{x, shift, factor});
}
template <class D>
HWY_INLINE hn::Vec<D> add_at(D d, const float* x, const float* b, float* y, std::size_t i) {
  auto sum = hn::LoadU(d, x + i);
  if (b != nullptr) sum = hn::Add(sum, hn::LoadU(d, b + i));
  hn::StoreU(sum, d, y + i);
  return sum;
}

float AddAndMax(const float* x, const float* b, float* y, std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  // Starts from the lowest float: subtracting −infinity from −infinity would give NaN.
  auto most = hn::Set(d, std::numeric_limits<float>::lowest());
  for (; i + lanes <= n; i += lanes) most = hn::Max(most, add_at(d, x, b, y, i));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) largest = std::max(largest, hn::GetLane(add_at(one, x, b, y, i)));
  return largest;
}

BlockOfExp ExpOfBlock(const float* x, const float* b, float* y, const float* ahead, std::size_t n) {
  const float shift = AddAndMax(x, b, y, n);
  return {shift, sum_terms(n, KeptExpTerm{y, ahead, shift})};
}

template <class D>
HWY_INLINE void scale_and_add_at(D d, std::span<const ScaledRow> rows, float* sums, std::size_t i) {
  auto sum = hn::LoadU(d, sums + i);
  for (const ScaledRow& row : rows) {
    const auto scaled = hn::Mul(hn::LoadU(d, row.y + i), hn::Set(d, row.factor));
    hn::StoreU(scaled, d, row.y + i);
    sum = hn::Add(sum, scaled);
  }
  hn::StoreU(sum, d, sums + i);
}

void ScaleAndAdd(std::span<const ScaledRow> rows, float* sums, std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) scale_and_add_at(d, rows, sums, i);
  for (; i < n; ++i) scale_and_add_at(one, rows, sums, i);
}

double SumSquares(const float* x, std::size_t n) { return sum_terms(n, SquareTerm{x}); }
double SumProducts(const float* a, const float* b, std::size_t n) {
  return sum_terms(n, ProductTerm{a, b});
}
double SumSquaredDifferences(const float* a, const float* b, std::size_t n) {
  return sum_terms(n, SquaredDifferenceTerm{a, b});
}
void ScaledDifference(const float* a, const float* b, float factor, float* y, std::size_t n) {
  store_values(y, n, DifferenceTerm{a, b, factor});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {
namespace {

// Squares of float32 numbers beyond 1.8e19 or below 1.1e-19 do not fit float32. If the sum shows an
// overflow, or is so small that lost squares may count, the function sums the squares of all
// term(i) again in double.
constexpr double kLeastSum = 1e-25;

template <typename Term>
double sum_in_range(double sum, std::int64_t n, const Term& term) {
  if (sum >= kLeastSum && std::isfinite(sum)) return sum;
  double sums[4] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = term(i);
    sums[i % 4] += value * value;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

HWY_EXPORT(SumExp);
HWY_EXPORT(ScaledExp);
HWY_EXPORT(ExpOfBlock);
HWY_EXPORT(ScaleAndAdd);
HWY_EXPORT(SumSquares);
HWY_EXPORT(SumProducts);
HWY_EXPORT(SumSquaredDifferences);
HWY_EXPORT(ScaledDifference);

double sum_exp(const float* x, float shift, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumExp)(x, shift, std::size_t(n));
}
void scaled_exp(const float* x, float shift, float factor, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaledExp)(x, shift, factor, y, std::size_t(n));
}
BlockOfExp exp_of_block(const float* x, const float* b, float* y, const float* ahead,
                        std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ExpOfBlock)(x, b, y, ahead, std::size_t(n));
}
void scale_and_add(std::span<const ScaledRow> rows, float* sums, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaleAndAdd)(rows, sums, std::size_t(n));
}
double sum_squares(const float* x, std::int64_t n) {
  const double sum = HWY_DYNAMIC_DISPATCH(SumSquares)(x, std::size_t(n));
  return sum_in_range(sum, n, [&](std::int64_t i) { return double(x[i]); });
}
double sum_products(const float* a, const float* b, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumProducts)(a, b, std::size_t(n));
}
double sum_squared_differences(const float* a, const float* b, std::int64_t n) {
  const double sum = HWY_DYNAMIC_DISPATCH(SumSquaredDifferences)(a, b, std::size_t(n));
  return sum_in_range(sum, n, [&](std::int64_t i) { return double(a[i]) - double(b[i]); });
}
void scaled_difference(const float* a, const float* b, float factor, float* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaledDifference)(a, b, factor, y, std::size_t(n));
}

}  // namespace paceline
#endif
