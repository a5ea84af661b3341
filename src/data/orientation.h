// The turning and mirroring of an image before it is shown, as EXIF gives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/image_part.h"

namespace paceline {

/// The orientation that EXIF data names: the bytes of a TIFF header and what follows. 1, as the
/// image is stored, when they name none.
int exif_orientation(std::span<const std::uint8_t> tiff);

/// One of EXIF's eight orientations. The pixel of the shown image at (x, y) is the stored one at
/// (x, y), or at (y, x) when `swapped`, counted from the right when `mirrored` and from below when
/// `flipped`.
struct Orientation {
  bool swapped = false, mirrored = false, flipped = false;

  /// `number` as EXIF counts, from 1; as the image is stored for any other number.
  explicit Orientation(int number);
  bool changes() const { return swapped || mirrored || flipped; }
  /// The size of the shown image.
  ImageSize shown(const ImageSize& stored) const;
  /// Returns the place in the stored image, of that size, of a part of the shown one.
  ImagePart stored(const ImagePart& shown, const ImageSize& stored) const;
  /// Writes the shown image; the stored one has three interleaved channels.
  void show(std::span<const std::uint8_t> stored, const ImageSize& size,
            std::vector<std::uint8_t>& to) const;
};

}  // namespace paceline
