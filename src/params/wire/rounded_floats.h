// Numbers that travel as bfloat16: rounded to nearest even where float32 lies, and widened there
// again. A frame's offset counts bytes of float32; its payload is half as long.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// Writes `values` + `errors`, rounded, to `to`, and the part that the rounding left out to
/// `errors` (error feedback: Seide et al., "1-bit stochastic gradient descent", Interspeech 2014),
/// 0 where it is not finite. With `errors` null they count as 0, and none are kept. `to` may be
/// where `values` begin, or lie before.
void round_to(std::span<float> values, float* errors, std::byte* to);
/// Rounds to the first half of the memory, which it returns.
std::span<const std::byte> round_in_place(std::span<std::byte> floats, float* errors = nullptr);

/// Returns the memory for bfloat16 numbers that widen_in_place then makes float32 of: the second
/// half of `floats`.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats);
void widen_in_place(std::span<std::byte> floats);

}  // namespace paceline
