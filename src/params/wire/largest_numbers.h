// The largest numbers of each block of kScaledBlock numbers, with their places in it. With --top-k
// only these travel of a contribution.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Finds the numbers of `floats` + `errors` that are furthest from 0, and writes them to `to`,
/// which has room for travelling_bytes(). Each block has their places, in ascending order, one byte
/// each, and then their values in the form's type. Of equal numbers the first are kept. A number
/// that is not finite counts as largest, so that it is seen. Writes the left-out numbers to
/// `errors` (may be null: they are lost), and returns the bytes that were written.
std::size_t keep_largest(std::span<const std::byte> floats, const ContributionForm& form,
                         float* errors, std::byte* to);

/// Makes float32 from the bytes at the end of `floats`, where place_of_rounded() says; all other
/// places become 0. A place outside of its block counts as the block's last one.
void spread_largest(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
