// Tests the pixels that files decode to, for each format, bit depth and piece of metadata.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/testing/error_of.h"
#include "data/jpeg_encode.h"
#include "paceline/data.h"

namespace paceline {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// The contents of a PNG file. Values are given row by row, with the channels of a pixel side by
/// side. A value of 16 bits takes two bytes, the high one first.
struct PngParts {
  int height = 0, width = 0;
  int bits = 8;                      // of a value
  int colour_type = 2;               // of libpng: PNG_COLOR_TYPE_RGB
  Bytes palette = {};                // three values a colour
  std::optional<double> gamma = {};  // of a gAMA chunk
  bool srgb = false;                 // an sRGB chunk
  Bytes exif = {};                   // of an eXIf chunk
};

void put(Bytes& to, std::uint32_t value, int bytes, bool big_endian) {
  for (int i = 0; i < bytes; ++i) {
    to.push_back(std::uint8_t(value >> 8 * (big_endian ? bytes - 1 - i : i)));
  }
}

Bytes encode_png(const PngParts& parts, Bytes values) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep data, std::size_t size) {
        auto* const bytes = static_cast<Bytes*>(png_get_io_ptr(to));
        bytes->insert(bytes->end(), data, data + size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, png_uint_32(parts.width), png_uint_32(parts.height), parts.bits,
               parts.colour_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette;
  for (std::size_t i = 0; i + 2 < parts.palette.size(); i += 3) {
    palette.push_back({parts.palette[i], parts.palette[i + 1], parts.palette[i + 2]});
  }
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), int(palette.size()));
  if (parts.gamma) png_set_gAMA(png, info, *parts.gamma);
  if (parts.srgb) png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  Bytes exif = parts.exif;
  if (!exif.empty()) png_set_eXIf_1(png, info, png_uint_32(exif.size()), exif.data());
  png_write_info(png, info);
  const std::size_t row = values.size() / std::size_t(parts.height);
  for (int y = 0; y < parts.height; ++y) png_write_row(png, values.data() + std::size_t(y) * row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

/// EXIF data that names an orientation.
Bytes exif_of(int orientation, bool big_endian) {
  Bytes exif(2, big_endian ? 'M' : 'I');
  put(exif, 42, 2, big_endian);
  put(exif, 8, 4, big_endian);  // where the entries are
  put(exif, 2, 2, big_endian);  // their number
  const auto put_short = [&](std::uint32_t tag, int value) {
    put(exif, tag, 2, big_endian);
    put(exif, 3, 2, big_endian);  // a short
    put(exif, 1, 4, big_endian);  // one of it
    put(exif, std::uint32_t(value), 2, big_endian);
    put(exif, 0, 2, big_endian);
  };
  put_short(0x0100, 77);  // the width
  put_short(0x0112, orientation);
  put(exif, 0, 4, big_endian);  // no further entries
  return exif;
}

/// Returns the JPEG file with this EXIF data.
Bytes with_exif(const Bytes& jpeg, const Bytes& exif) {
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  put(file, 0xFFE1, 2, true);
  put(file, std::uint32_t(2 + 6 + exif.size()), 2, true);
  for (const char c : {'E', 'x', 'i', 'f', '\0', '\0'}) file.push_back(std::uint8_t(c));
  file.insert(file.end(), exif.begin(), exif.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

/// Encodes pixels of three channels, or of four with alpha, as a lossless WebP file.
Bytes encode_webp(const Bytes& pixels, int height, int width, int channels) {
  std::uint8_t* bytes = nullptr;
  const std::size_t size =
      channels == 4 ? WebPEncodeLosslessRGBA(pixels.data(), width, height, width * 4, &bytes)
                    : WebPEncodeLosslessRGB(pixels.data(), width, height, width * 3, &bytes);
  Bytes file(bytes, bytes + size);
  WebPFree(bytes);
  return file;
}

constexpr int kHeight = 6, kWidth = 10;

Example decoded_file(const Bytes& file, const ImageDecoding& decoding = {}) {
  Example example;
  example.memory = file;
  example.bytes = example.memory;
  decode_image(decoding, example);
  return example;
}

Bytes pixels_in(const Bytes& file) {
  const Example example = decoded_file(file);
  return {example.bytes.begin(), example.bytes.end()};
}

// The values 0, 3, 6, … for each channel of an image.
Bytes ramp(int channels) {
  Bytes values;
  for (int i = 0; i < kHeight * kWidth * channels; ++i) values.push_back(std::uint8_t(3 * i));
  return values;
}

// Returns the values in 16 bits: 257 times as large, plus up to 127, which rounding removes.
Bytes in_16_bits(const Bytes& values) {
  Bytes wide;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int value = std::min<int>(values[i] * 257 + int(i * 31 % 128), 65535);
    wide.push_back(std::uint8_t(value >> 8));
    wide.push_back(std::uint8_t(value));
  }
  return wide;
}

int channels_of(int colour_type) {
  return (colour_type & PNG_COLOR_MASK_COLOR ? 3 : 1) +
         (colour_type & PNG_COLOR_MASK_ALPHA ? 1 : 0);
}

void expect_near(const Bytes& pixels, const Bytes& wanted, int most) {
  ASSERT_EQ(pixels.size(), wanted.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_LE(std::abs(pixels[i] - wanted[i]), most) << "at " << i;
  }
}

class PngOf : public ::testing::TestWithParam<int> {};

TEST_P(PngOf, SixteenBitsHasThePixelsOfItsTwinOfEight) {
  PngParts parts = {.height = kHeight, .width = kWidth, .colour_type = GetParam()};
  const Bytes values = ramp(channels_of(GetParam()));
  const Bytes twin = pixels_in(encode_png(parts, values));
  parts.bits = 16;
  for (const bool srgb : {false, true}) {
    parts.srgb = srgb;
    expect_near(pixels_in(encode_png(parts, in_16_bits(values))), twin, 1);
  }
}

TEST_P(PngOf, AnotherGammaHasTheSamePixels) {
  PngParts parts = {.height = kHeight, .width = kWidth, .colour_type = GetParam()};
  const Bytes values = ramp(channels_of(GetParam()));
  const Bytes without = pixels_in(encode_png(parts, values));
  for (const double gamma : {0.45455, 1.0, 0.3}) {
    parts.gamma = gamma;
    EXPECT_EQ(pixels_in(encode_png(parts, values)), without) << gamma;
  }
}

INSTANTIATE_TEST_SUITE_P(ColourTypes, PngOf,
                         ::testing::Values(PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                                           PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA));

TEST(PngPixels, AreTheValuesOfTheFile) {
  const Bytes colours = ramp(3);
  const Bytes file =
      encode_png({.height = kHeight, .width = kWidth, .bits = 16}, in_16_bits(colours));
  expect_near(pixels_in(file), colours, 1);
}

TEST(PngPixels, ShowWhatIsTransparentOnBlack) {
  const PngParts parts = {.height = 1, .width = 3, .colour_type = PNG_COLOR_TYPE_GRAY_ALPHA};
  EXPECT_EQ(pixels_in(encode_png(parts, {10, 200, 100, 51, 100, 0})),
            (Bytes{8, 8, 8, 20, 20, 20, 0, 0, 0}));
}

TEST(PngPixels, OfAPaletteIgnoreGamma) {
  const PngParts parts = {.height = 1,
                          .width = 3,
                          .colour_type = PNG_COLOR_TYPE_PALETTE,
                          .palette = {10, 20, 30, 200, 100, 50},
                          .gamma = 1.0};
  EXPECT_EQ(pixels_in(encode_png(parts, {1, 0, 1})),
            (Bytes{200, 100, 50, 10, 20, 30, 200, 100, 50}));
}

TEST(WebpPixels, AreTheValuesOfTheFile) {
  const Bytes colours = ramp(3);
  const Example example = decoded_file(encode_webp(colours, kHeight, kWidth, 3));
  EXPECT_EQ(example.size, (ImageSize{kHeight, kWidth, 3}));
  EXPECT_EQ(Bytes(example.bytes.begin(), example.bytes.end()), colours);
}

TEST(WebpPixels, ShowWhatIsTransparentOnBlack) {
  const Bytes file = encode_webp({200, 100, 50, 255, 200, 100, 50, 0}, 1, 2, 4);
  EXPECT_EQ(pixels_in(file), (Bytes{200, 100, 50, 0, 0, 0}));
}

TEST(WebpPixels, OfATruncatedFileAreRefused) {
  Bytes file = encode_webp(ramp(3), kHeight, kWidth, 3);
  file.resize(file.size() - 9);
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { decoded_file(file); }),
              ::testing::HasSubstr("truncated"));
}

// Colours in blocks of 16 × 16 pixels, so that JPEG does not mix them: red, green and blue in the
// upper row, and white, black and yellow below.
constexpr int kBlock = 16;
constexpr std::uint8_t kColours[2][3][3] = {{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}},
                                            {{255, 255, 255}, {0, 0, 0}, {255, 255, 0}}};

Bytes coloured_blocks() {
  Bytes pixels;
  for (int y = 0; y < 2 * kBlock; ++y) {
    for (int x = 0; x < 3 * kBlock; ++x) {
      const auto& colour = kColours[y / kBlock][x / kBlock];
      pixels.insert(pixels.end(), std::begin(colour), std::end(colour));
    }
  }
  return pixels;
}

std::string letter_at(const Example& image, std::int64_t row, std::int64_t column) {
  const std::int64_t y = row * kBlock + kBlock / 2, x = column * kBlock + kBlock / 2;
  const std::uint8_t* const pixel = image.bytes.data() + (y * image.size.width + x) * 3;
  std::string bits;
  for (int c = 0; c < 3; ++c) bits += pixel[c] > 127 ? '1' : '0';
  return bits == "100"   ? "R"
         : bits == "010" ? "G"
         : bits == "001" ? "B"
         : bits == "111" ? "W"
         : bits == "000" ? "K"
                         : "Y";
}

std::string letters_of(const Example& image) {
  std::string letters;
  for (std::int64_t row = 0; row < image.size.height / kBlock; ++row) {
    for (std::int64_t column = 0; column < image.size.width / kBlock; ++column) {
      letters += letter_at(image, row, column);
    }
    letters += '/';
  }
  return letters;
}

// What each orientation makes of the picture with RGB above WKY (TIFF 6.0, page 36).
constexpr const char* kShown[] = {"RGB/WKY/",  "RGB/WKY/",  "BGR/YKW/",  "YKW/BGR/", "WKY/RGB/",
                                  "RW/GK/BY/", "WR/KG/YB/", "YB/KG/WR/", "BY/GK/RW/"};

TEST(ExifOrientation, TurnsJpegFiles) {
  const Bytes plain = encode_jpeg(coloured_blocks(), 2 * kBlock, 3 * kBlock, 95);
  EXPECT_EQ(letters_of(decoded_file(plain)), kShown[1]);
  for (int orientation = 0; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      const Bytes file = with_exif(plain, exif_of(orientation, big_endian));
      EXPECT_EQ(letters_of(decoded_file(file)), kShown[orientation]) << orientation;
    }
  }
}

TEST(ExifOrientation, TurnsPngFiles) {
  PngParts parts = {.height = 2 * kBlock, .width = 3 * kBlock};
  for (int orientation = 0; orientation <= 8; ++orientation) {
    parts.exif = exif_of(orientation, true);
    EXPECT_EQ(letters_of(decoded_file(encode_png(parts, coloured_blocks()))), kShown[orientation])
        << orientation;
  }
}

// The part of a turned image is cut out of the image as it is shown, at the requested size.
TEST(ExifOrientation, IsAppliedBeforeAPartIsTaken) {
  PngParts parts = {.height = 2 * kBlock, .width = 3 * kBlock};
  parts.exif = exif_of(6, false);
  const Example whole = decoded_file(encode_png(parts, coloured_blocks()));
  Bytes shown(whole.bytes.begin(), whole.bytes.end());
  const Bytes upright = encode_png({.height = 3 * kBlock, .width = 2 * kBlock}, shown);
  const ImageDecoding decoding = {.height = 12, .width = 20};
  const Example turned = decoded_file(encode_png(parts, coloured_blocks()), decoding);
  EXPECT_EQ(turned.size, (ImageSize{12, 20, 3}));
  const Example wanted = decoded_file(upright, decoding);
  expect_near({turned.bytes.begin(), turned.bytes.end()},
              {wanted.bytes.begin(), wanted.bytes.end()}, 1);
}

TEST(ExifOrientation, IsNoneInDataThatIsCutOff) {
  const Bytes exif = exif_of(6, false);
  const Bytes plain = encode_jpeg(coloured_blocks(), 2 * kBlock, 3 * kBlock, 95);
  for (std::size_t size = 0; size < 30; ++size) {
    const Bytes cut(exif.begin(), exif.begin() + std::ptrdiff_t(size));
    EXPECT_EQ(letters_of(decoded_file(with_exif(plain, cut))), kShown[1]) << size;
  }
}

}  // namespace
}  // namespace paceline
