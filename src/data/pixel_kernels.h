// Loops over the pixels of an image, compiled for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

struct PixelSums {
  std::int64_t sum = 0, squares = 0;
};
/// The exact sums of values and of their squares.
PixelSums pixel_sums(std::span<const std::uint8_t> pixels);

/// The function scale · (pixel − center) + offset.
struct PixelLine {
  float center = 0, scale = 1, offset = 0;
};
void apply_line(std::span<const std::uint8_t> pixels, PixelLine line, float* values);
/// Applies a line to each of three planes that lie one after the other; the three values of a pixel
/// are side by side in the result.
void apply_lines_interleaved(std::span<const std::uint8_t> planes, const PixelLine* lines,
                             float* values);
/// Takes pixels of three values apart: `pixels` has 3 · count values, a plane `count`.
void split_channels(const std::uint8_t* pixels, std::size_t count, std::uint8_t* first,
                    std::uint8_t* second, std::uint8_t* third);

}  // namespace paceline
