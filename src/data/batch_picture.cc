#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/picture.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::int64_t kGap = 2;  // pixels between two images

/// A grid of images.
struct Grid {
  std::int64_t images, height, width;
  std::int64_t columns = std::int64_t(std::ceil(std::sqrt(double(images))));
  std::int64_t rows = (images + columns - 1) / columns;
  std::int64_t pixels_across() const { return columns * (width + kGap) - kGap; }
  std::int64_t pixels_down() const { return rows * (height + kGap) - kGap; }
};

Grid grid_of(const Shape& shape, PixelLayout layout) {
  const bool planar = layout == PixelLayout::kPlanar;
  if (shape.rank() != 4 || shape[planar ? 1 : 3] != 3 || shape.elements() == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a batch of {} is no images of three channels", shape.str()));
  }
  return {.images = shape[0], .height = shape[planar ? 2 : 1], .width = shape[planar ? 3 : 2]};
}

}  // namespace

void draw_image(std::span<const float> values, const ImageSize& size, PixelLayout layout,
                std::uint8_t* corner, std::int64_t across) {
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const double scale = most > least ? 255 / (double(most) - double(least)) : 0;
  const std::int64_t plane = size.height * size.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    std::uint8_t* const pixel = corner + (i / size.width * across + i % size.width) * 3;
    for (std::int64_t c = 0; c < 3; ++c) {
      const std::int64_t channel = std::min(c, size.channels - 1);
      const std::int64_t at =
          layout == PixelLayout::kPlanar ? channel * plane + i : size.channels * i + channel;
      const float value = values[std::size_t(at)];
      pixel[c] = std::isfinite(value)
                     ? std::uint8_t(std::lround((double(value) - double(least)) * scale))
                     : 0;
    }
  }
}

std::optional<ImageForm> image_form(DType dtype, const Shape& shape) {
  if (dtype != DType::kFloat32 || shape.rank() != 4 || shape.elements() == 0) return {};
  const auto has_colours = [](std::int64_t channels) { return channels == 1 || channels == 3; };
  if (has_colours(shape[1])) {
    return ImageForm{{shape[2], shape[3], shape[1]}, PixelLayout::kPlanar};
  }
  if (!has_colours(shape[3])) return {};
  return ImageForm{{shape[1], shape[2], shape[3]}, PixelLayout::kInterleaved};
}

void write_batch_png(const std::string& path, const InputBatch& batch, PixelLayout layout) {
  const Grid grid = grid_of(batch.values.shape(), layout);
  const auto values = batch.values.data<float>();
  const auto image = std::size_t(3 * grid.height * grid.width);
  std::vector<std::uint8_t> pixels(std::size_t(grid.pixels_down() * grid.pixels_across() * 3));
  for (std::int64_t i = 0; i < grid.images; ++i) {
    const std::int64_t down = i / grid.columns * (grid.height + kGap);
    const std::int64_t across = i % grid.columns * (grid.width + kGap);
    draw_image(values.subspan(std::size_t(i) * image, image), {grid.height, grid.width, 3}, layout,
               pixels.data() + (down * grid.pixels_across() + across) * 3, grid.pixels_across());
  }
  write_png(path, pixels, grid.pixels_down(), grid.pixels_across());
}

}  // namespace paceline
