// Copies of bytes that nobody reads soon.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// Copies as many bytes as both ranges have, from and to multiples of 4 bytes. The target need not
/// be fetched first, and the copy drives nothing out of the caches.
void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace paceline
