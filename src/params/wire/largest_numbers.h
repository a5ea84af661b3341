// The largest numbers of each block of kScaledBlock numbers, with their places in it: what travels
// of a contribution with --top-k.
#pragma once

#include <cstddef>
#include <span>

#include "params/wire/travelling_type.h"

namespace paceline {

/// Finds the numbers of `floats` + `errors` that are furthest from 0, and writes them to `to`,
/// which has room for travelling_bytes(), block after block: their places, in ascending order, one
/// byte each, and then their values in the form's type. Of equal numbers the first are kept. What
/// is not finite counts as largest, so that it is seen. Writes what is left out to `errors` (may be
/// null: it is lost), and returns the bytes that were written.
std::size_t keep_largest(std::span<const std::byte> floats, const ContributionForm& form,
                         float* errors, std::byte* to);

/// Makes float32 of what lies at the end of `floats`, where place_of_rounded() says: 0 at all other
/// places. A place outside of its block counts as its last one.
void spread_largest(std::span<std::byte> floats, const ContributionForm& form);

}  // namespace paceline
