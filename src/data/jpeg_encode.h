// JPEG files, for tests and measurements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// Encodes pixels of three interleaved channels, or of one, as a JPEG file of a quality from 1 to
/// 100. Colours have half the resolution, as in files of cameras.
std::vector<std::uint8_t> encode_jpeg(std::span<const std::uint8_t> pixels, std::int64_t height,
                                      std::int64_t width, int quality, int channels = 3);

}  // namespace paceline
