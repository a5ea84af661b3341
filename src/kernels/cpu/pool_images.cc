#include "kernels/cpu/pool_images.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_images.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#ifndef PACELINE_KERNELS_CPU_POOL_IMAGES_
#define PACELINE_KERNELS_CPU_POOL_IMAGES_
namespace paceline {
namespace {

struct PoolRange {
  std::int64_t begin, end;
};

// The elements of window `index` along dimension d that lie in an image of this extent.
PoolRange elements_of_window(const Window2d& window, int d, std::int64_t index,
                             std::int64_t extent) {
  const std::int64_t begin = window.begin(d, index);
  return {std::max<std::int64_t>(0, -begin), std::min(window.size[std::size_t(d)], extent - begin)};
}

// The windows along dimension d that cover a place of the image.
PoolRange windows_over(const Window2d& window, int d, std::int64_t place, std::int64_t windows) {
  const std::int64_t stride = window.strides[std::size_t(d)];
  const std::int64_t at = place + window.pads[std::size_t(d)];
  const std::int64_t first = at - window.size[std::size_t(d)] + 1;  // of the earliest window
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

// Calls f(d, c) for each vector of channels, from channel c on.
template <class F>
HWY_INLINE void for_channel_vectors(std::int64_t channels, const F& f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::int64_t lanes = std::int64_t(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) f(d, c);
  for (; c < channels; ++c) f(one, c);
}

// Calls f(i, j, pixel) for each element (i, j) of a window that lies in the image, and its pixel.
template <class F>
HWY_INLINE void for_window_pixels(const PoolShape& s, std::int64_t row, std::int64_t column,
                                  const F& f) {
  const PoolRange rows = elements_of_window(s.window, 0, row, s.h);
  const PoolRange columns = elements_of_window(s.window, 1, column, s.w);
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    const std::int64_t first = (s.window.begin(0, row) + i) * s.w + s.window.begin(1, column);
    for (std::int64_t j = columns.begin; j < columns.end; ++j) f(i, j, first + j);
  }
}

template <class D>
using PlacesOf = hn::RebindToSigned<D>;

void MaxPoolImage(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  for (std::int64_t out = 0; out < s.pooled_h * s.pooled_w; ++out) {
    for_channel_vectors(s.channels, [&](auto d, std::int64_t c) {
      using D = decltype(d);
      const PlacesOf<D> di;
      const hn::Rebind<std::uint8_t, D> bytes;
      auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
      auto place = hn::Set(di, -1);
      for_window_pixels(s, out / s.pooled_w, out % s.pooled_w, [&](auto i, auto j, auto pixel) {
        const auto value = hn::LoadU(d, x + pixel * s.channels + c);
        // A maximum that is NaN stays. The first element counts also when it is −infinity.
        const auto first = hn::RebindMask(d, hn::Lt(place, hn::Zero(di)));
        const auto greater =
            hn::Or(hn::Gt(value, largest), hn::AndNot(hn::IsNaN(largest), hn::IsNaN(value)));
        const auto takes = hn::Or(first, greater);
        largest = hn::IfThenElse(takes, value, largest);
        const auto here = hn::Set(di, std::int32_t(i * s.window.size[1] + j));
        place = hn::IfThenElse(hn::RebindMask(di, takes), here, place);
      });
      hn::StoreU(largest, d, y + out * s.channels + c);
      hn::StoreU(hn::DemoteTo(bytes, place), bytes, places + out * s.channels + c);
    });
  }
}

// Calls f(window, i, j) for each window that covers a pixel, of which the pixel is element (i, j).
template <class F>
HWY_INLINE void for_windows_over(const PoolShape& s, std::int64_t row, std::int64_t column,
                                 const F& f) {
  const PoolRange hs = windows_over(s.window, 0, row, s.pooled_h);
  const PoolRange ws = windows_over(s.window, 1, column, s.pooled_w);
  for (std::int64_t h = hs.begin; h < hs.end; ++h)
    for (std::int64_t w = ws.begin; w < ws.end; ++w)
      f(h, w, row - s.window.begin(0, h), column - s.window.begin(1, w));
}

void MaxPoolImageGrad(const PoolShape& s, const float* dy, const std::uint8_t* places, float* dx) {
  for (std::int64_t pixel = 0; pixel < s.h * s.w; ++pixel) {
    for_channel_vectors(s.channels, [&](auto d, std::int64_t c) {
      using D = decltype(d);
      const PlacesOf<D> di;
      const hn::Rebind<std::uint8_t, D> bytes;
      auto sum = hn::Zero(d);
      for_windows_over(s, pixel / s.w, pixel % s.w, [&](auto h, auto w, auto i, auto j) {
        const std::int64_t from = (h * s.pooled_w + w) * s.channels + c;
        const auto place = hn::PromoteTo(di, hn::LoadU(bytes, places + from));
        const auto here = hn::Eq(place, hn::Set(di, std::int32_t(i * s.window.size[1] + j)));
        sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, here), hn::LoadU(d, dy + from)));
      });
      hn::StoreU(sum, d, dx + pixel * s.channels + c);
    });
  }
}

// 1 ÷ the elements of a window that lie in the image.
float ShareOfWindow(const PoolShape& s, std::int64_t row, std::int64_t column) {
  const PoolRange rows = elements_of_window(s.window, 0, row, s.h);
  const PoolRange columns = elements_of_window(s.window, 1, column, s.w);
  return 1 / float((rows.end - rows.begin) * (columns.end - columns.begin));
}

void AvgPoolImage(const PoolShape& s, const float* x, float* y) {
  for (std::int64_t out = 0; out < s.pooled_h * s.pooled_w; ++out) {
    const std::int64_t row = out / s.pooled_w, column = out % s.pooled_w;
    const float share = ShareOfWindow(s, row, column);
    for_channel_vectors(s.channels, [&](auto d, std::int64_t c) {
      auto sum = hn::Zero(d);
      for_window_pixels(s, row, column, [&](auto, auto, auto pixel) {
        sum = hn::Add(sum, hn::LoadU(d, x + pixel * s.channels + c));
      });
      hn::StoreU(hn::Mul(sum, hn::Set(d, share)), d, y + out * s.channels + c);
    });
  }
}

void AvgPoolImageGrad(const PoolShape& s, const float* dy, float* dx) {
  for (std::int64_t pixel = 0; pixel < s.h * s.w; ++pixel) {
    for_channel_vectors(s.channels, [&](auto d, std::int64_t c) {
      auto sum = hn::Zero(d);
      for_windows_over(s, pixel / s.w, pixel % s.w, [&](auto h, auto w, auto, auto) {
        const auto share = hn::Set(d, ShareOfWindow(s, h, w));
        sum = hn::MulAdd(share, hn::LoadU(d, dy + (h * s.pooled_w + w) * s.channels + c), sum);
      });
      hn::StoreU(sum, d, dx + pixel * s.channels + c);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline {

namespace {
HWY_EXPORT(MaxPoolImage);
HWY_EXPORT(MaxPoolImageGrad);
HWY_EXPORT(AvgPoolImage);
HWY_EXPORT(AvgPoolImageGrad);
}  // namespace

void max_pool_image(const PoolShape& shape, const float* x, float* y, std::uint8_t* places) {
  HWY_DYNAMIC_DISPATCH(MaxPoolImage)(shape, x, y, places);
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
