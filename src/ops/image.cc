#include "ops/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ops/expect.h"

namespace paceline {

namespace {

using Numbers = std::vector<std::int64_t>;

template <std::size_t N>
std::array<std::int64_t, N> numbers_of(const Attributes& attributes, const char* name) {
  const Numbers& numbers = attributes.get<Numbers>(name);
  std::array<std::int64_t, N> result{};
  if (numbers.size() == N) std::ranges::copy(numbers, result.begin());
  return result;
}

// The most that a number of a window may be: sums of larger numbers could overflow.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 30;

bool all_within(std::span<const std::int64_t> numbers, std::int64_t least) {
  return std::ranges::all_of(numbers,
                             [=](std::int64_t x) { return x >= least && x <= kMostPixels; });
}

}  // namespace

bool channels_last(const Attributes& attributes) {
  return attributes.has("channels_last") && attributes.get<bool>("channels_last");
}

ImageShape ImageShape::of(const Shape& shape, bool channels_last) {
  if (channels_last) return {shape[0], shape[3], shape[1], shape[2]};
  return {shape[0], shape[1], shape[2], shape[3]};
}

Shape ImageShape::shape(bool channels_last) const {
  return channels_last ? Shape{n, h, w, c} : Shape{n, c, h, w};
}

std::array<std::int64_t, 4> ImageShape::strides(bool channels_last) const {
  if (channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

Window2d Window2d::of(const Attributes& attributes) {
  Window2d window;
  window.strides = numbers_of<2>(attributes, "strides");
  window.pads = numbers_of<4>(attributes, "pads");
  if (attributes.has("dilations")) window.dilations = numbers_of<2>(attributes, "dilations");
  if (attributes.has("size")) window.size = numbers_of<2>(attributes, "size");
  return window;
}

std::int64_t Window2d::reach(int d) const {
  return dilations[std::size_t(d)] * (size[std::size_t(d)] - 1) + 1;
}

std::int64_t Window2d::outputs(int d, std::int64_t extent) const {
  const std::int64_t whole = extent + pads[std::size_t(d)] + pads[std::size_t(d) + 2];
  return whole < reach(d) ? 0 : (whole - reach(d)) / strides[std::size_t(d)] + 1;
}

std::int64_t Window2d::begin(int d, std::int64_t index) const {
  return index * strides[std::size_t(d)] - pads[std::size_t(d)];
}

ImageShape expect_image(const OpInputs& in, int i, const char* what) {
  expect_rank(in, i, what, 4);
  const ImageShape image = ImageShape::of(in.shape(i), channels_last(in.attributes));
  if (image.c < 1 || image.h < 1 || image.w < 1) {
    in.fail(fmt::format("{} is {}, without elements", what, in.shape(i).str()));
  }
  return image;
}

std::array<std::int64_t, 2> expect_windows(const OpInputs& in, const Window2d& window,
                                           const ImageShape& image) {
  const bool good = all_within(window.size, 1) && all_within(window.strides, 1) &&
                    all_within(window.dilations, 1) && all_within(window.pads, 0);
  if (!good) {
    in.fail(fmt::format("windows of ({}), strides ({}), dilations ({}) and padding ({}) cannot be",
                        fmt::join(window.size, ","), fmt::join(window.strides, ","),
                        fmt::join(window.dilations, ","), fmt::join(window.pads, ",")));
  }
  const std::array outputs = {window.outputs(0, image.h), window.outputs(1, image.w)};
  if (outputs[0] < 1 || outputs[1] < 1) {
    in.fail(fmt::format("a window of ({}) does not fit {} padded by ({})",
                        fmt::join(window.size, ","), in.shape(0).str(),
                        fmt::join(window.pads, ",")));
  }
  return outputs;
}

}  // namespace paceline
