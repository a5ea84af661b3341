// Encoded images of every kind, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline::testing {

/// The contents of a PNG file. Values are those of a row after the other, channels side by side;
/// of 16 bits two bytes each, the high one first.
struct PngParts {
  int height = 0, width = 0;
  int bits = 8;                            // of a value
  int colour_type = 2;                     // of libpng: PNG_COLOR_TYPE_RGB
  std::vector<std::uint8_t> palette = {};  // three values a colour
  std::optional<double> gamma = {};        // of a gAMA chunk
  bool srgb = false;                       // an sRGB chunk
  std::vector<std::uint8_t> exif = {};     // of an eXIf chunk
};
std::vector<std::uint8_t> encode_png(const PngParts& parts, std::vector<std::uint8_t> values);

/// EXIF data that names an orientation.
std::vector<std::uint8_t> exif_of(int orientation, bool big_endian);
/// The JPEG file with EXIF data.
std::vector<std::uint8_t> with_exif(const std::vector<std::uint8_t>& jpeg,
                                    const std::vector<std::uint8_t>& exif);

/// Pixels of three channels, or of four with alpha, as a lossless WebP file.
std::vector<std::uint8_t> encode_webp(const std::vector<std::uint8_t>& pixels, int height,
                                      int width, int channels);

}  // namespace paceline::testing
