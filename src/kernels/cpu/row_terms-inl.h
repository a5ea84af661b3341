// Passes over rows of float32 whose terms are functors. A file that includes this one after
// <hwy/foreach_target.h> compiles it once for each instruction set.
#if defined(PACELINE_KERNELS_CPU_ROW_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PACELINE_KERNELS_CPU_ROW_TERMS_INL_H_
#undef PACELINE_KERNELS_CPU_ROW_TERMS_INL_H_
#else
#define PACELINE_KERNELS_CPU_ROW_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kTermBlock = 1024;

// Cuts n elements into vectors, and calls f(d, i) for the vector that begins at element i: first
// whole vectors of the widest D, then single elements.
template <class F>
HWY_INLINE void for_vectors(std::int64_t n, const F& f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::int64_t lanes = std::int64_t(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(one, i);
}

// Returns the sum of n terms. term(d, i) returns the terms from i on as a vector of D.
template <class Term>
HWY_INLINE double sum_terms(std::size_t n, const Term& term) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  double total = 0;
  for (std::size_t begin = 0; begin < n; begin += kTermBlock) {
    const std::size_t end = std::min(n, begin + kTermBlock);
    auto sum = hn::Zero(d), other = hn::Zero(d);
    std::size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      sum = hn::Add(sum, term(d, i));
      other = hn::Add(other, term(d, i + lanes));
    }
    total += double(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, other))));
    for (; i < end; ++i) total += double(hn::GetLane(term(one, i)));
  }
  return total;
}

template <class Values>
HWY_INLINE void store_values(float* y, std::size_t n, const Values& values) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(values(d, i), d, y + i);
  for (; i < n; ++i) hn::StoreU(values(one, i), one, y + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#endif
