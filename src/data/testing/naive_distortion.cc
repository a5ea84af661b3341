#include "data/testing/naive_distortion.h"

#include <algorithm>
#include <cmath>

namespace paceline {
namespace {

/// Values as (channels, height, width).
struct Planes {
  ImageSize size;
  std::vector<double> values = std::vector<double>(std::size_t(size.values()));
  double& at(std::int64_t c, std::int64_t y, std::int64_t x) {
    return values[std::size_t((c * size.height + y) * size.width + x)];
  }
};

std::int64_t reflected_place(std::int64_t i, std::int64_t count) {
  if (i < 0) return -i;
  return i < count ? i : 2 * count - 2 - i;
}

double pixel(const Example& example, PadWith margin, std::int64_t c, std::int64_t y,
             std::int64_t x) {
  const ImageSize& size = example.size;
  if (margin == PadWith::kReflection) {
    y = reflected_place(y, size.height);
    x = reflected_place(x, size.width);
  }
  if (y < 0 || y >= size.height || x < 0 || x >= size.width) return 0;
  const std::int64_t at = example.layout == PixelLayout::kPlanar
                              ? (c * size.height + y) * size.width + x
                              : (y * size.width + x) * size.channels + c;
  return example.bytes[std::size_t(at)];
}

template <typename F>
void for_each_value(const ImageSize& size, F&& call) {
  for (std::int64_t c = 0; c < size.channels; ++c) {
    for (std::int64_t y = 0; y < size.height; ++y) {
      for (std::int64_t x = 0; x < size.width; ++x) call(c, y, x);
    }
  }
}

void change_contrast(Planes& image, double factor) {
  const std::int64_t plane = image.size.height * image.size.width;
  for (std::int64_t c = 0; c < image.size.channels; ++c) {
    double mean = 0;
    for (std::int64_t i = 0; i < plane; ++i) {
      mean += image.values[std::size_t(c * plane + i)] / double(plane);
    }
    for (std::int64_t i = 0; i < plane; ++i) {
      double& value = image.values[std::size_t(c * plane + i)];
      value = (value - mean) * factor + mean;
    }
  }
}

void standardise(Planes& image) {
  const auto n = double(image.values.size());
  double mean = 0, variance = 0;
  for (const double value : image.values) mean += value / n;
  for (const double value : image.values) variance += (value - mean) * (value - mean) / n;
  const double deviation = std::max(std::sqrt(variance), 1 / std::sqrt(n));
  for (double& value : image.values) value = (value - mean) / deviation;
}

}  // namespace

std::vector<double> naive_distortion(const Distortion& distortion, const Example& example,
                                     const NaiveDraws& draws) {
  const std::int64_t pad = distortion.pad;
  Planes image{{distortion.height > 0 ? distortion.height : example.size.height + 2 * pad,
                distortion.width > 0 ? distortion.width : example.size.width + 2 * pad,
                example.size.channels}};
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    const std::int64_t from = draws.mirrored ? image.size.width - 1 - x : x;
    image.at(c, y, x) =
        pixel(example, distortion.pad_with, c, y + draws.top - pad, from + draws.left - pad);
  });
  for (double& value : image.values) value += draws.brightness;
  change_contrast(image, draws.contrast);
  if (distortion.standardise) standardise(image);
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    double& value = image.at(c, y, x);
    value = (value - distortion.means[std::size_t(c)]) * distortion.scales[std::size_t(c)];
  });
  if (distortion.layout == PixelLayout::kPlanar) return image.values;
  std::vector<double> values(image.values.size());
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    values[std::size_t((y * image.size.width + x) * image.size.channels + c)] = image.at(c, y, x);
  });
  return values;
}

}  // namespace paceline
