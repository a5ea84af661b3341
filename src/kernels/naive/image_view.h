// Accesses a tensor of images by image, channel, row and column, in either layout.
#pragma once

#include "ops/image.h"
#include "paceline/op.h"

namespace paceline {

template <typename T>
class ImageView {
 public:
  ImageView(const TensorView& view, bool channels_last)
      : data_(view.as<T>()),
        extents_(ImageShape::of(view.shape, channels_last)),
        strides_(extents_.strides(channels_last)) {}

  const ImageShape& extents() const { return extents_; }
  /// True if the row and the column lie in the image, not in its padding.
  bool contains(std::int64_t h, std::int64_t w) const {
    return h >= 0 && h < extents_.h && w >= 0 && w < extents_.w;
  }
  T& operator()(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return data_[n * strides_[0] + c * strides_[1] + h * strides_[2] + w * strides_[3]];
  }

 private:
  T* data_;
  ImageShape extents_;
  std::array<std::int64_t, 4> strides_;
};

/// Calls f(n, c, h, w) for every element of an image.
template <typename F>
void for_each_element(const ImageShape& image, F&& f) {
  for (std::int64_t n = 0; n < image.n; ++n)
    for (std::int64_t c = 0; c < image.c; ++c)
      for (std::int64_t h = 0; h < image.h; ++h)
        for (std::int64_t w = 0; w < image.w; ++w) f(n, c, h, w);
}

/// Calls f(i, j, h, w) for every element (i, j) of the window at (row, column) of the output; h and
/// w are the position of the element in the image, or in the padding.
template <typename F>
void for_each_in_window(const Window2d& window, std::int64_t row, std::int64_t column, F&& f) {
  for (std::int64_t i = 0; i < window.size[0]; ++i)
    for (std::int64_t j = 0; j < window.size[1]; ++j)
      f(i, j, window.begin(0, row) + i * window.dilations[0],
        window.begin(1, column) + j * window.dilations[1]);
}

}  // namespace paceline
