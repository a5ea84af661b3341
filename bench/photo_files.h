// JPEG files that take as long to decode as photographs.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::bench {

/// Files that were written.
struct PhotoFiles {
  std::int64_t files = 0, height = 0, width = 0;
  double mean_bytes = 0;
  int quality = 0;  // of JPEG, of the last one
};

/// Writes `count` images of 500×375 to FOLDER/0 and FOLDER/1: noise of all sizes from 64 pixels to
/// one, whose amplitudes fall with the size as those of photographs do. Each has 90 to 120 KB: the
/// quality is chosen so.
PhotoFiles write_photo_files(const std::string& folder, std::int64_t count);

}  // namespace paceline::bench
