// Numbers that travel as bfloat16: rounded to nearest even where float32 lies, and widened there
// again. A frame's offset counts bytes of float32; its payload is half as long.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// `to` = `values` + errors, rounded; errors = what the rounding left out of that (error feedback:
/// Seide et al., "1-bit stochastic gradient descent", Interspeech 2014), 0 where it is not finite.
/// `errors` null: as if they were 0, and none are kept. `to` may be where `values` begin, or lie
/// before.
void round_to(std::span<float> values, float* errors, std::byte* to);
/// The same to the first half of the memory, which it returns.
std::span<const std::byte> round_in_place(std::span<std::byte> floats, float* errors = nullptr);

/// Where bfloat16 numbers are to be put that widen_in_place then makes float32 of: the second half
/// of `floats`.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats);
void widen_in_place(std::span<std::byte> floats);

}  // namespace paceline
