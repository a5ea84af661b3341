// The fewest elements for which waking a thread pays: a thread's part should take some 10 µs or
// more.
#pragma once

#include <cstdint>

namespace paceline {

/// For kernels that compute each element of a result by itself.
constexpr std::int64_t kElementsGrain = 16 * 1024;
/// For kernels that go through rows.
constexpr std::int64_t kRowsGrain = 8 * 1024;

/// Returns the fewest rows of `columns` elements for which waking a thread pays.
constexpr std::int64_t rows_grain(std::int64_t columns) {
  return columns == 0 ? 1 : (kRowsGrain + columns - 1) / columns;
}

}  // namespace paceline
