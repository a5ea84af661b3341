// Pictures of what a model sees.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "paceline/data.h"
#include "paceline/tensor.h"

namespace paceline {

/// Returns pixels, in rows of three interleaved channels, as the bytes of a PNG file.
std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width);

/// Draws an image of one or three channels. The least value becomes black and the greatest white;
/// values that are not finite are black. `corner` is the first pixel, of three bytes, in rows of
/// `across` pixels.
void draw_image(std::span<const float> values, const ImageSize& size, PixelLayout layout,
                std::uint8_t* corner, std::int64_t across);

/// The size and layout of the images in a batch: (N,C,H,W) or (N,H,W,C), with one channel or three.
struct ImageForm {
  ImageSize size;
  PixelLayout layout;
};
std::optional<ImageForm> image_form(DType dtype, const Shape& batch);

}  // namespace paceline
