// The largest numbers of each block of kScaledBlock numbers, with their places in the block. With
// --top-k, only these numbers of a contribution travel.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Finds, in each block, the numbers of `floats` + `errors` that are furthest from 0, and writes
/// them to `to`, which has room for travelling_bytes(). Writes to `errors` what does not travel:
/// the numbers that are left out, and the rounding errors of the others. If `errors` is null, both
/// are lost. Returns how many bytes it has written to `to`.
///
/// A block begins with the places of its kept numbers, in ascending order, one byte each. Their
/// values follow, in the form's type. If a last block is so short that this would save nothing, all
/// its values travel, without places. Of equal numbers, the first are kept. A number that is not
/// finite counts as the largest, so that the receiver sees it, and leaves no error.
std::size_t keep_largest(std::span<const std::byte> floats, const ContributionForm& form,
                         float* errors, std::byte* to);

/// Makes float32 numbers from the bytes that travelled, which lie at the end of `floats`
/// (place_of_rounded). All other numbers become 0. A place outside its block counts as the block's
/// last place.
void spread_largest(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
