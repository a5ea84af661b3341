#include "kernels/cpu/pool_images.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_images.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "kernels/cpu/row_terms-inl.h"

#ifndef PACELINE_KERNELS_CPU_POOL_IMAGES_
#define PACELINE_KERNELS_CPU_POOL_IMAGES_
namespace paceline {
namespace {

struct PoolRange {
  std::int64_t begin, end;
};

// Returns the elements of window `index` along dimension d that lie within the image's extent.
PoolRange elements_of_window(const Window2d& window, int d, std::int64_t index,
                             std::int64_t extent) {
  const std::int64_t begin = window.begin(d, index);
  return {std::max<std::int64_t>(0, -begin), std::min(window.size[std::size_t(d)], extent - begin)};
}

// Returns the windows along dimension d that cover a place of the image.
PoolRange windows_over(const Window2d& window, int d, std::int64_t place, std::int64_t windows) {
  const std::int64_t stride = window.strides[std::size_t(d)];
  const std::int64_t at = place + window.pads[std::size_t(d)];
  const std::int64_t first = at - window.size[std::size_t(d)] + 1;  // start of the earliest one
  return {first <= 0 ? 0 : (first + stride - 1) / stride, std::min(windows, at / stride + 1)};
}

}  // namespace
}  // namespace paceline
#endif

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Calls f(row, column) for each pixel of an image.
template <class F>
HWY_INLINE void for_pixels(std::int64_t h, std::int64_t w, const F& f) {
  for (std::int64_t row = 0; row < h; ++row)
    for (std::int64_t column = 0; column < w; ++column) f(row, column);
}

// The elements of one window that lie in the image, or the windows that cover one pixel.
struct PoolBox {
  PoolRange rows, columns;
  std::int64_t size() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }
};
template <class F>
HWY_INLINE void for_box(const PoolBox& box, const F& f) {
  for (std::int64_t i = box.rows.begin; i < box.rows.end; ++i)
    for (std::int64_t j = box.columns.begin; j < box.columns.end; ++j) f(i, j);
}

PoolBox ElementsOfWindow(const PoolShape& s, std::int64_t row, std::int64_t column) {
  return {elements_of_window(s.window, 0, row, s.h), elements_of_window(s.window, 1, column, s.w)};
}
PoolBox WindowsOver(const PoolShape& s, std::int64_t row, std::int64_t column) {
  return {windows_over(s.window, 0, row, s.pooled_h),
          windows_over(s.window, 1, column, s.pooled_w)};
}
// Returns the offset in floats at which a window begins; it may lie before the image.
std::int64_t FirstOfWindow(const PoolShape& s, std::int64_t row, std::int64_t column) {
  return (s.window.begin(0, row) * s.w + s.window.begin(1, column)) * s.channels;
}

template <class D>
using PlacesOf = hn::RebindToSigned<D>;

// With kRelu, the maximum of a window starts at zero, which has no place in the window.
template <bool kRelu>
HWY_INLINE void max_pool(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  for_pixels(s.pooled_h, s.pooled_w, [&](std::int64_t row, std::int64_t column) {
    const PoolBox box = ElementsOfWindow(s, row, column);
    const std::int64_t first = FirstOfWindow(s, row, column);
    for_vectors(s.channels, [&](auto d, std::int64_t c) {
      using D = decltype(d);
      const PlacesOf<D> di;
      const hn::Rebind<std::uint8_t, D> bytes;
      const std::int64_t first_place = box.rows.begin * s.window.size[1] + box.columns.begin;
      auto largest = hn::Set(d, kRelu ? 0.0f : -std::numeric_limits<float>::infinity());
      auto place = hn::Set(di, std::int32_t(kRelu ? std::int64_t{kNoPlace} : first_place));
      for_box(box, [&](std::int64_t i, std::int64_t j) {
        const auto value = hn::LoadU(d, x + first + (i * s.w + j) * s.channels + c);
        const auto takes = hn::Or(hn::Gt(value, largest), hn::IsNaN(value));
        largest = hn::IfThenElse(takes, value, largest);
        const auto here = hn::Set(di, std::int32_t(i * s.window.size[1] + j));
        place = hn::IfThenElse(hn::RebindMask(di, takes), here, place);
      });
      hn::StoreU(largest, d, y + c);
      hn::StoreU(hn::DemoteTo(bytes, place), bytes, places + c);
    });
    y += s.channels;
    places += s.channels;
  });
}

void MaxPoolImage(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  max_pool<false>(s, x, y, places);
}
void ReluMaxPoolImage(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  max_pool<true>(s, x, y, places);
}

void MaxPoolImageGrad(const PoolShape& s, const float* dy, const std::uint8_t* places, float* dx) {
  for_pixels(s.h, s.w, [&](std::int64_t row, std::int64_t column) {
    const PoolBox box = WindowsOver(s, row, column);
    for_vectors(s.channels, [&](auto d, std::int64_t c) {
      using D = decltype(d);
      const PlacesOf<D> di;
      const hn::Rebind<std::uint8_t, D> bytes;
      auto sum = hn::Zero(d);
      for_box(box, [&](std::int64_t h, std::int64_t w) {
        const std::int64_t i = row - s.window.begin(0, h), j = column - s.window.begin(1, w);
        const std::int64_t from = (h * s.pooled_w + w) * s.channels + c;
        const auto place = hn::PromoteTo(di, hn::LoadU(bytes, places + from));
        const auto here = hn::Eq(place, hn::Set(di, std::int32_t(i * s.window.size[1] + j)));
        sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, here), hn::LoadU(d, dy + from)));
      });
      hn::StoreU(sum, d, dx + c);
    });
    dx += s.channels;
  });
}

void AvgPoolImage(const PoolShape& s, const float* x, float* y) {
  for_pixels(s.pooled_h, s.pooled_w, [&](std::int64_t row, std::int64_t column) {
    const PoolBox box = ElementsOfWindow(s, row, column);
    const std::int64_t first = FirstOfWindow(s, row, column);
    const float share = 1 / float(box.size());
    for_vectors(s.channels, [&](auto d, std::int64_t c) {
      auto sum = hn::Zero(d);
      for_box(box, [&](std::int64_t i, std::int64_t j) {
        sum = hn::Add(sum, hn::LoadU(d, x + first + (i * s.w + j) * s.channels + c));
      });
      hn::StoreU(hn::Mul(sum, hn::Set(d, share)), d, y + c);
    });
    y += s.channels;
  });
}

// Adds, for each pixel, the share of one window after the other in all channels. This is fast since
// most pixels lie in one window or in none.
void AvgPoolImageGrad(const PoolShape& s, const float* dy, float* dx) {
  for_pixels(s.h, s.w, [&](std::int64_t row, std::int64_t column) {
    const PoolBox box = WindowsOver(s, row, column);
    bool first = true;
    for_box(box, [&](std::int64_t h, std::int64_t w) {
      const float share = 1 / float(ElementsOfWindow(s, h, w).size());
      const float* const from = dy + (h * s.pooled_w + w) * s.channels;
      for_vectors(s.channels, [&](auto d, std::int64_t c) {
        const auto before = first ? hn::Zero(d) : hn::LoadU(d, dx + c);
        hn::StoreU(hn::MulAdd(hn::Set(d, share), hn::LoadU(d, from + c), before), d, dx + c);
      });
      first = false;
    });
    if (first) std::fill_n(dx, s.channels, 0.0f);
    dx += s.channels;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(MaxPoolImage);
HWY_EXPORT(ReluMaxPoolImage);
HWY_EXPORT(MaxPoolImageGrad);
HWY_EXPORT(AvgPoolImage);
HWY_EXPORT(AvgPoolImageGrad);
}  // namespace

void max_pool_image(const PoolShape& shape, const float* x, float* y, std::uint8_t* places) {
  HWY_DYNAMIC_DISPATCH(MaxPoolImage)(shape, x, y, places);
}
void relu_max_pool_image(const PoolShape& shape, const float* x, float* y, std::uint8_t* places) {
  HWY_DYNAMIC_DISPATCH(ReluMaxPoolImage)(shape, x, y, places);
}
void max_pool_image_grad(const PoolShape& shape, const float* dy, const std::uint8_t* places,
                         float* dx) {
  HWY_DYNAMIC_DISPATCH(MaxPoolImageGrad)(shape, dy, places, dx);
}
void avg_pool_image(const PoolShape& shape, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(AvgPoolImage)(shape, x, y);
}
void avg_pool_image_grad(const PoolShape& shape, const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(AvgPoolImageGrad)(shape, dy, dx);
}

}  // namespace paceline
#endif  // HWY_ONCE
