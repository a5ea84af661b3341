// Images: activations (N,C,H,W), or (N,H,W,C) in nodes with the attribute "channels_last". Planning
// gives this attribute to graphs (graph/channels_last.cc).
#pragma once

#include <array>
#include <cstdint>

#include "paceline/op.h"

namespace paceline {

/// True if the node's images lie with their channels last.
bool channels_last(const Attributes& attributes);

/// The extents of an image in either layout.
struct ImageShape {
  std::int64_t n = 0, c = 0, h = 0, w = 0;

  /// `shape` has four dimensions.
  static ImageShape of(const Shape& shape, bool channels_last);
  Shape shape(bool channels_last) const;
  /// Returns how many elements lie from one n, c, h and w to the next.
  std::array<std::int64_t, 4> strides(bool channels_last) const;
};

/// How windows move over an image. Pairs are height and width; pads are top, left, bottom, right.
struct Window2d {
  std::array<std::int64_t, 2> size = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::array<std::int64_t, 4> pads = {0, 0, 0, 0};

  /// Reads the attributes "strides", "dilations", "pads" and, where the op has it, "size".
  static Window2d of(const Attributes& attributes);
  /// Returns how many elements a window covers in dimension d; dimension 0 is the height.
  std::int64_t reach(int d) const;
  /// Returns the number of windows along an extent of the image; less than 1 if none fits.
  std::int64_t outputs(int d, std::int64_t extent) const;
  /// Returns the begin of window `index` in dimension d; it may lie in the margin.
  std::int64_t begin(int d, std::int64_t index) const;
};

/// The place that relu_max_pool2d stores for a window without an element above zero. Its windows
/// have at most this many elements, so the number is free.
constexpr std::uint8_t kNoPlace = 255;

/// Returns input i as an image. Fails when it does not have four dimensions, or has no height,
/// width or channels.
ImageShape expect_image(const OpInputs& in, int i, const char* what);
/// Returns the output's height and width. Fails if the window's numbers are not allowed, or if no
/// window fits.
std::array<std::int64_t, 2> expect_windows(const OpInputs& in, const Window2d& window,
                                           const ImageShape& image);

}  // namespace paceline
