#include "data/testing/encoded_images.h"

#include <png.h>
#include <webp/encode.h>

#include <cstddef>

namespace paceline::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put(Bytes& to, std::uint32_t value, int bytes, bool big_endian) {
  for (int i = 0; i < bytes; ++i) {
    to.push_back(std::uint8_t(value >> 8 * (big_endian ? bytes - 1 - i : i)));
  }
}

}  // namespace

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

Bytes with_exif(const Bytes& jpeg, const Bytes& exif) {
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  put(file, 0xFFE1, 2, true);
  put(file, std::uint32_t(2 + 6 + exif.size()), 2, true);
  for (const char c : {'E', 'x', 'i', 'f', '\0', '\0'}) file.push_back(std::uint8_t(c));
  file.insert(file.end(), exif.begin(), exif.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

Bytes encode_webp(const Bytes& pixels, int height, int width, int channels) {
  std::uint8_t* bytes = nullptr;
  const std::size_t size =
      channels == 4 ? WebPEncodeLosslessRGBA(pixels.data(), width, height, width * 4, &bytes)
                    : WebPEncodeLosslessRGB(pixels.data(), width, height, width * 3, &bytes);
  Bytes file(bytes, bytes + size);
  WebPFree(bytes);
  return file;
}

}  // namespace paceline::testing
