#include "kernels/cpu/channel_rows.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/channel_rows.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/row_terms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A chunk of rows stays in the first-level cache while its columns are computed one after the
// other, each as wide as a vector.
constexpr std::size_t kChunkFloats = 4096;
constexpr std::size_t kFewestRows = 16;

// Calls f(d, j, begin, end) for each chunk of rows [begin, end) and each vector of channels, which
// begins at channel j.
template <class F>
HWY_INLINE void for_channel_columns(std::size_t rows, std::size_t channels, const F& f) {
  const std::size_t chunk = std::max(kFewestRows, kChunkFloats / channels);
  for (std::size_t begin = 0; begin < rows; begin += chunk) {
    const std::size_t end = std::min(rows, begin + chunk);
    for_vectors(std::int64_t(channels),
                [&](auto d, std::int64_t j) { f(d, std::size_t(j), begin, end); });
  }
}

// The numbers of a ChannelNorm for a vector of channels.
template <class D>
struct NormColumn {
  using V = hn::Vec<D>;
  V mean, scale, offset, slope, least;
  NormColumn(D d, const ChannelNorm& norm, std::size_t j)
      : mean(hn::LoadU(d, norm.mean + j)),
        scale(hn::LoadU(d, norm.scale + j)),
        offset(hn::LoadU(d, norm.offset + j)),
        slope(hn::Set(d, norm.slope)),
        least(hn::Set(d, norm.slope == 0 ? std::numeric_limits<float>::min() : 0.0f)) {}
  HWY_INLINE V z(V distance) const { return hn::MulAdd(distance, scale, offset); }
  // Returns `x`, or slope·x where z is below zero and, with slope 0, where z is zero or subnormal.
  HWY_INLINE V by_slope(V z, V x) const {
    return hn::IfThenElse(hn::Lt(z, least), hn::Mul(slope, x), x);
  }
};

template <class D, class V>
HWY_INLINE void add_lanes(D d, V sum, double* totals) {
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(sum, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) totals[i] += double(lanes[i]);
}

// Computes two sums for each channel of the column; add(r, a, b) adds the terms of row r to a and
// b. Four partial sums of each let additions overlap.
template <class D, class Add>
HWY_INLINE void sum_column(D d, std::size_t begin, std::size_t end, const Add& add,
                           double* totals_a, double* totals_b) {
  auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  std::size_t r = begin;
  for (; r + 4 <= end; r += 4) {
    add(r, a0, b0);
    add(r + 1, a1, b1);
    add(r + 2, a2, b2);
    add(r + 3, a3, b3);
  }
  for (; r < end; ++r) add(r, a0, b0);
  add_lanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), totals_a);
  add_lanes(d, hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)), totals_b);
}

void SumChannels(const float* x, std::size_t rows, std::size_t channels, const float* center,
                 double* sums, double* squares) {
  for_channel_columns(rows, channels, [&](auto d, auto j, auto begin, auto end) {
    const auto middle = hn::LoadU(d, center + j);
    const auto add = [&](std::size_t r, auto& sum, auto& square) {
      const auto distance = hn::Sub(hn::LoadU(d, x + r * channels + j), middle);
      sum = hn::Add(sum, distance);
      square = hn::MulAdd(distance, distance, square);
    };
    sum_column(d, begin, end, add, sums + j, squares + j);
  });
}

template <bool kActivation>
HWY_INLINE void normalize(const float* x, std::size_t rows, std::size_t channels,
                          const ChannelNorm& norm, float* y) {
  for_channel_columns(rows, channels, [&](auto d, auto j, auto begin, auto end) {
    const NormColumn<decltype(d)> column(d, norm, j);
    for (std::size_t r = begin; r < end; ++r) {
      const auto distance = hn::Sub(hn::LoadU(d, x + r * channels + j), column.mean);
      auto z = column.z(distance);
      if constexpr (kActivation) z = column.by_slope(z, z);
      hn::StoreU(z, d, y + r * channels + j);
    }
  });
}

void NormalizeChannels(const float* x, std::size_t rows, std::size_t channels,
                       const ChannelNorm& norm, float* y) {
  norm.slope == 1 ? normalize<false>(x, rows, channels, norm, y)
                  : normalize<true>(x, rows, channels, norm, y);
}

template <bool kActivation>
HWY_INLINE void sum_gradients(const float* dy, const float* x, std::size_t rows,
                              std::size_t channels, const ChannelNorm& norm, double* sums,
                              double* products) {
  for_channel_columns(rows, channels, [&](auto d, auto j, auto begin, auto end) {
    const NormColumn<decltype(d)> column(d, norm, j);
    const auto add = [&](std::size_t r, auto& sum, auto& product) {
      const auto distance = hn::Sub(hn::LoadU(d, x + r * channels + j), column.mean);
      auto dz = hn::LoadU(d, dy + r * channels + j);
      if constexpr (kActivation) dz = column.by_slope(column.z(distance), dz);
      sum = hn::Add(sum, dz);
      product = hn::MulAdd(dz, distance, product);
    };
    sum_column(d, begin, end, add, sums + j, products + j);
  });
}

void SumChannelGradients(const float* dy, const float* x, std::size_t rows, std::size_t channels,
                         const ChannelNorm& norm, double* sums, double* products) {
  norm.slope == 1 ? sum_gradients<false>(dy, x, rows, channels, norm, sums, products)
                  : sum_gradients<true>(dy, x, rows, channels, norm, sums, products);
}

template <bool kActivation>
HWY_INLINE void gradients_of(const float* dy, const float* x, std::size_t rows,
                             std::size_t channels, const ChannelNorm& norm,
                             const ChannelGradient& gradient, float* dx) {
  for_channel_columns(rows, channels, [&](auto d, auto j, auto begin, auto end) {
    const NormColumn<decltype(d)> column(d, norm, j);
    const auto of_gradient = hn::LoadU(d, gradient.of_gradient + j);
    const auto of_distance = hn::LoadU(d, gradient.of_distance + j);
    const auto constant = hn::LoadU(d, gradient.constant + j);
    for (std::size_t r = begin; r < end; ++r) {
      const auto distance = hn::Sub(hn::LoadU(d, x + r * channels + j), column.mean);
      auto dz = hn::LoadU(d, dy + r * channels + j);
      if constexpr (kActivation) dz = column.by_slope(column.z(distance), dz);
      const auto rest = hn::MulAdd(of_distance, distance, constant);
      hn::StoreU(hn::MulAdd(of_gradient, dz, rest), d, dx + r * channels + j);
    }
  });
}

void ChannelGradients(const float* dy, const float* x, std::size_t rows, std::size_t channels,
                      const ChannelNorm& norm, const ChannelGradient& gradient, float* dx) {
  norm.slope == 1 ? gradients_of<false>(dy, x, rows, channels, norm, gradient, dx)
                  : gradients_of<true>(dy, x, rows, channels, norm, gradient, dx);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(SumChannels);
HWY_EXPORT(NormalizeChannels);
HWY_EXPORT(SumChannelGradients);
HWY_EXPORT(ChannelGradients);
}  // namespace

void sum_channels(const float* x, std::int64_t rows, std::int64_t channels, const float* center,
                  double* sums, double* squares) {
  HWY_DYNAMIC_DISPATCH(SumChannels)
  (x, std::size_t(rows), std::size_t(channels), center, sums, squares);
}
void normalize_channels(const float* x, std::int64_t rows, std::int64_t channels,
                        const ChannelNorm& norm, float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeChannels)(x, std::size_t(rows), std::size_t(channels), norm, y);
}
void sum_channel_gradients(const float* dy, const float* x, std::int64_t rows,
                           std::int64_t channels, const ChannelNorm& norm, double* sums,
                           double* products) {
  HWY_DYNAMIC_DISPATCH(SumChannelGradients)
  (dy, x, std::size_t(rows), std::size_t(channels), norm, sums, products);
}
void channel_gradients(const float* dy, const float* x, std::int64_t rows, std::int64_t channels,
                       const ChannelNorm& norm, const ChannelGradient& gradient, float* dx) {
  HWY_DYNAMIC_DISPATCH(ChannelGradients)
  (dy, x, std::size_t(rows), std::size_t(channels), norm, gradient, dx);
}

}  // namespace paceline
#endif  // HWY_ONCE
