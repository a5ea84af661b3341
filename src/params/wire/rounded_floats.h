// Numbers that travel in fewer bytes than float32. The sender makes them where the float32 numbers
// lie, and the receiver widens them to float32 in place. A frame's offset counts bytes of float32,
// although its payload is shorter.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Rounds the numbers `floats` + `errors` to `type`, writes them to the start of the memory of
/// `floats`, and returns the bytes to send. Writes to `errors` the difference that rounding makes,
/// or 0 if the difference is not finite (error feedback: Seide et al., "1-bit stochastic gradient
/// descent", Interspeech 2014). If `errors` is null, errors count as 0 and are not kept. A finite
/// number beyond the largest float16 becomes the largest float16, so that its error stays finite.
/// If `type` is float32, nothing changes.
std::span<const std::byte> round_in_place(std::span<std::byte> floats, DType type,
                                          float* errors = nullptr);

/// Returns the memory at the end of `floats` in which numbers of `type` must lie for
/// widen_in_place.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats, DType type);
void widen_in_place(std::span<std::byte> floats, DType type);

// Returns the memory for the numbers of a contribution, whose form may keep only the largest ones
// (largest_numbers.h). The numbers that are left out arrive as 0.
std::span<std::byte> place_of_rounded(std::span<std::byte> floats, const ContributionForm& form);
void widen_in_place(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
