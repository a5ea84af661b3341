// How elements compare: what reduce_max, maximum, sign, arg_max and top_k_accuracy say on every
// device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline {

/// NaN where one of them is NaN.
template <typename T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <typename T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

/// The first of equals.
template <typename T>
std::int32_t index_of_largest(const T* x, std::int64_t columns) {
  return std::int32_t(std::max_element(x, x + columns) - x);
}

/// Of equals the first ranks higher, so that with k = 1 it agrees with index_of_largest. NaN is
/// never among them.
template <typename T>
bool among_largest(const T* x, std::int64_t columns, std::int64_t index, std::int64_t k) {
  const T own = x[index];
  std::int64_t before = 0;
  for (std::int64_t j = 0; j < index; ++j) before += x[j] >= own ? 1 : 0;
  for (std::int64_t j = index + 1; j < columns; ++j) before += x[j] > own ? 1 : 0;
  return before < k && own == own;
}

/// −1, 0 or 1; NaN of NaN.
template <typename T>
T sign_of(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}

}  // namespace paceline
