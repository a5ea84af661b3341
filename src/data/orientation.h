// How an image must be turned and mirrored before it is shown, as its EXIF data says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image_part.h"

namespace paceline {

/// Returns the orientation in EXIF data, which begin with a TIFF header; 1, for an image that is
/// shown as it is stored, if they name none.
int exif_orientation(std::span<const std::uint8_t> tiff);

/// One of EXIF's eight orientations. Pixel (x, y) of the shown image is the stored pixel (x, y), or
/// (y, x) if `swapped`. The stored column is counted from the right if `mirrored`, and the stored
/// row from below if `flipped`.
struct Orientation {
  bool swapped = false, mirrored = false, flipped = false;

  /// `number` is EXIF's number, which counts from 1. Any other number stands for the image as it is
  /// stored.
  explicit Orientation(int number);
  bool changes() const { return swapped || mirrored || flipped; }
  /// The size of the shown image.
  ImageSize shown(const ImageSize& stored) const;
  /// Returns where a part of the shown image lies in the stored image, which has the size `stored`.
  ImagePart stored(const ImagePart& shown, const ImageSize& stored) const;
  /// Writes the shown image to `to`. The stored one has three interleaved channels.
  void show(std::span<const std::uint8_t> stored, const ImageSize& size,
            std::vector<std::uint8_t>& to) const;
};

}  // namespace paceline
