// Numbers that travel in fewer bytes than those of float32: made where float32 lies, and widened
// there again. A frame's offset counts bytes of float32; its payload is shorter.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Makes numbers of `type` of `floats` + `errors` at the beginning of the memory, which it returns,
/// and writes the part that the rounding left out to `errors` (error feedback: Seide et al., "1-bit
/// stochastic gradient descent", Interspeech 2014), 0 where it is not finite. With `errors` null
/// they count as 0, and none are kept. What is beyond the largest float16 becomes that, so that an
/// error stays finite.
std::span<const std::byte> round_in_place(std::span<std::byte> floats, DType type,
                                          float* errors = nullptr);

/// Returns the memory for numbers of `type` that widen_in_place then makes float32 of: the end of
/// `floats`.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats, DType type);
void widen_in_place(std::span<std::byte> floats, DType type);

// The same for contributions, of which a form may keep the largest numbers alone
// (largest_numbers.h). The others arrive as 0.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats, const ContributionForm& form);
void widen_in_place(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
