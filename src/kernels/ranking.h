// How elements compare: the rules of reduce_max, maximum, sign, arg_max and top_k_accuracy on every
// device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline {

/// Returns the larger operand, or NaN if an operand is NaN.
template <typename T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <typename T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

/// Returns the index of the largest element; of equal ones, that of the first.
template <typename T>
std::int32_t index_of_largest(const T* x, std::int64_t columns) {
  return std::int32_t(std::max_element(x, x + columns) - x);
}

/// True if element `index` is among the k largest. Of equal elements the first ranks highest, so
/// with k = 1 the result agrees with index_of_largest. NaN is never among the largest.
template <typename T>
bool among_largest(const T* x, std::int64_t columns, std::int64_t index, std::int64_t k) {
  const T own = x[index];
  std::int64_t before = 0;
  for (std::int64_t j = 0; j < index; ++j) before += x[j] >= own ? 1 : 0;
  for (std::int64_t j = index + 1; j < columns; ++j) before += x[j] > own ? 1 : 0;
  return before < k && own == own;
}

/// Returns −1, 0 or 1; NaN for NaN.
template <typename T>
T sign_of(T x) {
  return x > 0 ? T(1) : x < 0 ? T(-1) : x;
}

}  // namespace paceline
