// Copies of bytes that nobody reads soon.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// Copies as many bytes as both ranges have; both must begin at multiples of 4 bytes. The copy
/// drives nothing out of the caches, and the target need not be fetched first.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace paceline
