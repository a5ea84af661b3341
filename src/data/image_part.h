// Parts of encoded images, and how they are decoded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "paceline/data.h"

namespace paceline {

/// A rectangle of an image, in pixels.
struct ImagePart {
  double left = 0, top = 0, width = 0, height = 0;
};

/// Returns the part that becomes the result, for an image of this size.
ImagePart part_to_decode(const ImageDecoding& decoding, const ImageSize& image, std::int64_t epoch,
                         std::int64_t place);

/// Decoded pixels of three interleaved channels, which contain the wanted part.
struct DecodedPart {
  std::int64_t height = 0, width = 0;
  ImagePart part;  // in these pixels
};

/// An image with more pixels than this is not decoded.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

/// The header of an encoded image.
struct ImageHeader {
  ImageSize size;       // as it is stored
  int orientation = 1;  // of EXIF (data/orientation.h)
};

/// A format of encoded images. `decode` writes the part, in the orientation in which pixels are
/// stored. It may scale the part down, but not below `height` × `width` pixels, and never scales it
/// up. `header` and `decode` throw kDataLoss, naming the fault.
struct ImageFormat {
  std::string_view name;                      // "JPEG"
  std::span<const std::string_view> endings;  // of its files' names: ".jpg"
  bool (*is_of)(std::span<const std::uint8_t> file);
  ImageHeader (*header)(std::span<const std::uint8_t> file);
  DecodedPart (*decode)(std::span<const std::uint8_t> file, const ImagePart& part,
                        std::int64_t height, std::int64_t width, std::vector<std::uint8_t>& to);
};
extern const ImageFormat kJpegFormat;  // by libjpeg-turbo
extern const ImageFormat kPngFormat;   // by libpng
extern const ImageFormat kWebpFormat;  // by libwebp
inline constexpr std::array<const ImageFormat*, 3> kImageFormats = {&kJpegFormat, &kPngFormat,
                                                                    &kWebpFormat};

/// Turns pixels with alpha into pixels of three channels, as they look on black.
void show_on_black(std::vector<std::uint8_t>& pixels);

/// Scales a part of three interleaved channels by bilinear interpolation. The centres of pixels lie
/// at halves, and the image continues beyond its edge with the pixels at the edge.
void resize_part(std::span<const std::uint8_t> pixels, const DecodedPart& from, std::int64_t height,
                 std::int64_t width, std::uint8_t* to);

}  // namespace paceline
