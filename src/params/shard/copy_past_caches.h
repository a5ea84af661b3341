// Copies of bytes that nobody reads soon.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// Copies `from` to `to`. Both have the same size, and begin at multiples of 4 bytes. A large copy
/// writes past the caches: it drives nothing out of them, and the target need not be fetched first.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace paceline
