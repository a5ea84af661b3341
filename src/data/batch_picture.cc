#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

void draw_image(std::span<const float> values, const Grid& grid, PixelLayout layout,
                std::uint8_t* corner) {
  const auto [least, most] = std::ranges::minmax(values);
  const float scale = most > least ? 255 / (most - least) : 0;
  const std::int64_t plane = grid.height * grid.width;
  for (std::int64_t i = 0; i < plane; ++i) {
    std::uint8_t* const pixel =
        corner + (i / grid.width * grid.pixels_across() + i % grid.width) * 3;
    for (std::int64_t c = 0; c < 3; ++c) {
      const std::int64_t at = layout == PixelLayout::kPlanar ? c * plane + i : 3 * i + c;
      pixel[c] = std::uint8_t(std::lround((values[std::size_t(at)] - least) * scale));
    }
  }
}

}  // namespace

void write_batch_png(const std::string& path, const InputBatch& batch, PixelLayout layout) {
  const Grid grid = grid_of(batch.values.shape(), layout);
  const auto values = batch.values.data<float>();
  const auto image = std::size_t(3 * grid.height * grid.width);
  std::vector<std::uint8_t> pixels(std::size_t(grid.pixels_down() * grid.pixels_across() * 3));
  for (std::int64_t i = 0; i < grid.images; ++i) {
    const std::int64_t down = i / grid.columns * (grid.height + kGap);
    const std::int64_t across = i % grid.columns * (grid.width + kGap);
    draw_image(values.subspan(std::size_t(i) * image, image), grid, layout,
               pixels.data() + (down * grid.pixels_across() + across) * 3);
  }
  write_png(path, pixels, grid.pixels_down(), grid.pixels_across());
}

}  // namespace paceline
