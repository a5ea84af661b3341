// The inner loops of bilinear interpolation, compiled for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// values[i] = above[i] + weight · (below[i] − above[i])
void blend_rows(const std::uint8_t* above, const std::uint8_t* below, float weight,
                std::size_t count, float* values);
/// to[i] = values[first[i]] + weights[i] · (values[second[i]] − values[first[i]]), rounded.
void blend_columns(const float* values, const std::int32_t* first, const std::int32_t* second,
                   const float* weights, std::size_t count, std::uint8_t* to);

}  // namespace paceline
