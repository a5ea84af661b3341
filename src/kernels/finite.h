// Finds numbers that are NaN or infinite.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// Returns the position of the first value that is NaN or infinite; values.size() if there is none.
std::size_t first_not_finite(std::span<const float> values);

}  // namespace paceline
