// Loops over the pixels of an image, compiled for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

struct PixelSums {
  std::int64_t sum = 0, squares = 0;
};
/// Returns the exact sums of the values and of their squares.
PixelSums pixel_sums(std::span<const std::uint8_t> pixels);

/// The function scale · (pixel − center) + offset.
struct PixelLine {
  float center = 0, scale = 1, offset = 0;
};
void apply_line(std::span<const std::uint8_t> pixels, PixelLine line, float* values);
/// Applies a line to each of three planes that lie one after the other. In the result, the three
/// values of a pixel lie side by side.
void apply_lines_interleaved(std::span<const std::uint8_t> planes, const PixelLine* lines,
                             float* values);
/// Separates the channels of pixels with three values: `pixels` has 3 · count values, and each
/// plane gets `count`.
void split_channels(const std::uint8_t* pixels, std::size_t count, std::uint8_t* first,
                    std::uint8_t* second, std::uint8_t* third);

}  // namespace paceline
