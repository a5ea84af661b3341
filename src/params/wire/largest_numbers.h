// The largest numbers of each block of kScaledBlock numbers, with their places in the block. With
// --top-k, only these numbers of a contribution travel.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Finds, in each block, the numbers of `floats` + `errors` that are furthest from 0, and writes
/// them to `to`, which has room for travelling_bytes(). Writes the numbers that it leaves out to
/// `errors`; if `errors` is null, they are lost. Returns how many bytes it has written.
///
/// A block has first the places of its numbers, in ascending order, one byte each, and then their
/// values in the form's type. Of equal numbers, the first are kept. A number that is not finite
/// counts as the largest, so that the receiver sees it.
std::size_t keep_largest(std::span<const std::byte> floats, const ContributionForm& form,
                         float* errors, std::byte* to);

/// Makes float32 numbers from the bytes at the end of `floats`, where place_of_rounded() has put
/// them. All other numbers become 0. A place outside its block counts as the block's last place.
void spread_largest(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
