#include "data/orientation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace paceline {
namespace {

/// Reads numbers in the byte order that a TIFF header names; bytes beyond the end are 0.
struct TiffBytes {
  std::span<const std::uint8_t> bytes;
  bool big_endian = false;

  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at + size > bytes.size()) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | bytes[at + (big_endian ? i : size - 1 - i)];
    }
    return value;
  }
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t kMagic = 42, kOrientation = 0x112, kShort = 3;
  constexpr std::size_t kEntryBytes = 12;
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const TiffBytes in = {tiff, tiff[0] == 'M'};
  if (in.number(2, 2) != kMagic) return 1;
  const std::size_t folder = in.number(4, 4);
  const std::size_t entries = in.number(folder, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = folder + 2 + i * kEntryBytes;
    if (in.number(entry, 2) != kOrientation || in.number(entry + 2, 2) != kShort) continue;
    return int(in.number(entry + 8, 2));
  }
  return 1;
}

Orientation::Orientation(int number)
    : swapped(number >= 5 && number <= 8),
      mirrored(number == 2 || number == 3 || number == 7 || number == 8),
      flipped(number == 3 || number == 4 || number == 6 || number == 7) {}

ImageSize Orientation::shown(const ImageSize& stored) const {
  ImageSize size = stored;
  if (swapped) std::swap(size.height, size.width);
  return size;
}

ImagePart Orientation::stored(const ImagePart& shown, const ImageSize& stored) const {
  ImagePart part = shown;
  if (swapped) part = {shown.top, shown.left, shown.height, shown.width};
  if (mirrored) part.left = double(stored.width) - part.left - part.width;
  if (flipped) part.top = double(stored.height) - part.top - part.height;
  return part;
}

void Orientation::show(std::span<const std::uint8_t> stored, const ImageSize& size,
                       std::vector<std::uint8_t>& to) const {
  const ImageSize result = shown(size);
  to.resize(stored.size());
  auto* pixel = to.data();
  for (std::int64_t y = 0; y < result.height; ++y) {
    for (std::int64_t x = 0; x < result.width; ++x, pixel += 3) {
      std::int64_t column = swapped ? y : x, row = swapped ? x : y;
      if (mirrored) column = size.width - 1 - column;
      if (flipped) row = size.height - 1 - row;
      std::copy_n(stored.data() + (row * size.width + column) * 3, 3, pixel);
    }
  }
}

}  // namespace paceline
