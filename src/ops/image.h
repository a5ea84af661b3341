// Images: activations (N,C,H,W), or (N,H,W,C) in nodes with the attribute "channels_last". Planning
// gives this attribute to graphs (graph/channels_last.cc).
#pragma once

#include <array>
#include <cstdint>

#include "paceline/op.h"

namespace paceline {

/// True if a node with these attributes has its images in the layout (N,H,W,C).
bool channels_last(const Attributes& attributes);

/// The extents of a batch of images in either layout.
struct ImageShape {
  std::int64_t n = 0, c = 0, h = 0, w = 0;

  /// `shape` has four dimensions.
  static ImageShape of(const Shape& shape, bool channels_last);
  Shape shape(bool channels_last) const;
  /// Returns the distances, in elements, from one n, c, h and w to the next.
  std::array<std::int64_t, 4> strides(bool channels_last) const;
};

/// How windows move over an image. Pairs are height and width; pads are top, left, bottom, right.
struct Window2d {
  std::array<std::int64_t, 2> size = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::array<std::int64_t, 4> pads = {0, 0, 0, 0};

  /// Reads the attributes "strides", "dilations", "pads" and, where the op has it, "size".
  static Window2d of(const Attributes& attributes);
  /// Returns how many elements a window spans in dimension d, with the gaps of its dilation.
  /// Dimension 0 is the height.
  std::int64_t reach(int d) const;
  /// Returns the number of windows along an extent of the image; less than 1 if none fits.
  std::int64_t outputs(int d, std::int64_t extent) const;
  /// Returns where window `index` begins in dimension d; the number is negative in the padding.
  std::int64_t begin(int d, std::int64_t index) const;
};

/// The place that relu_max_pool2d stores for a window without an element above zero. A window of
/// this op has at most 255 elements, so the places of elements end at 254.
constexpr std::uint8_t kNoPlace = 255;

/// Returns input i as an image. Fails when it does not have four dimensions, or has no height,
/// width or channels.
ImageShape expect_image(const OpInputs& in, int i, const char* what);
/// Returns the output's height and width. Fails if the window's numbers are not allowed, or if no
/// window fits.
std::array<std::int64_t, 2> expect_windows(const OpInputs& in, const Window2d& window,
                                           const ImageShape& image);

}  // namespace paceline
