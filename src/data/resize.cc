#include <algorithm>
#include <cmath>

#include "data/image_part.h"
#include "data/resize_rows.h"

namespace paceline {
namespace {

/// The two pixels between which a pixel of the result lies.
struct Between {
  std::int64_t first = 0, second = 0;
  float weight = 0;  // of the second
};

Between between(std::int64_t at, double begin, double step, std::int64_t size) {
  const double place = std::clamp(begin + (double(at) + 0.5) * step - 0.5, 0.0, double(size - 1));
  const auto first = std::int64_t(place);
  return {first, std::min(first + 1, size - 1), float(place - double(first))};
}

}  // namespace

void resize_part(std::span<const std::uint8_t> pixels, const DecodedPart& from, std::int64_t height,
                 std::int64_t width, std::uint8_t* to) {
  const auto row = std::size_t(from.width * 3), values = std::size_t(width * 3);
  std::vector<std::int32_t> first(values), second(values);
  std::vector<float> weights(values), blended(row);
  for (std::int64_t x = 0; x < width; ++x) {
    const Between columns = between(x, from.part.left, from.part.width / double(width), from.width);
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto at = std::size_t(3 * x + c);
      first[at] = std::int32_t(3 * columns.first + c);
      second[at] = std::int32_t(3 * columns.second + c);
      weights[at] = columns.weight;
    }
  }
  for (std::int64_t y = 0; y < height; ++y) {
    const Between rows = between(y, from.part.top, from.part.height / double(height), from.height);
    blend_rows(pixels.data() + std::size_t(rows.first) * row,
               pixels.data() + std::size_t(rows.second) * row, rows.weight, row, blended.data());
    blend_columns(blended.data(), first.data(), second.data(), weights.data(), values,
                  to + std::size_t(y) * values);
  }
}

}  // namespace paceline
