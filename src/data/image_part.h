// Parts of encoded images, and how they are decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "paceline/data.h"

namespace paceline {

/// A rectangle of an image, in pixels.
struct ImagePart {
  double left = 0, top = 0, width = 0, height = 0;
};

/// The part of an image of this size that becomes the result.
ImagePart part_to_decode(const ImageDecoding& decoding, const ImageSize& image, std::int64_t epoch,
                         std::int64_t place);

/// Decoded pixels of three interleaved channels that hold a part.
struct DecodedPart {
  std::int64_t height = 0, width = 0;
  ImagePart part;  // in these pixels
};

/// The pixels of an image above which it is not decoded.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

/// JPEG (jpeg.cc), read by libjpeg-turbo, and PNG (png.cc), read by libpng. A size is that of the
/// image in the file; `decode` writes the part at least at `height` × `width` pixels, or as it is
/// where these are larger. They throw kDataLoss, naming the fault.
bool is_jpeg(std::span<const std::uint8_t> file);
ImageSize jpeg_size(std::span<const std::uint8_t> file);
DecodedPart decode_jpeg(std::span<const std::uint8_t> file, const ImagePart& part,
                        std::int64_t height, std::int64_t width, std::vector<std::uint8_t>& to);
bool is_png(std::span<const std::uint8_t> file);
ImageSize png_size(std::span<const std::uint8_t> file);
DecodedPart decode_png(std::span<const std::uint8_t> file, const ImagePart& part,
                       std::vector<std::uint8_t>& to);

/// Bilinear interpolation of a part of three interleaved channels; pixels have their centres at
/// halves. Beyond the edge lies what is at the edge.
void resize_part(std::span<const std::uint8_t> pixels, const DecodedPart& from, std::int64_t height,
                 std::int64_t width, std::uint8_t* to);

}  // namespace paceline
