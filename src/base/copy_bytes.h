// For copies that may be long.
#pragma once

#include <cstddef>

namespace paceline {

/// Copies as std::memcpy does, and at the same speed for all addresses. With no bytes, both
/// addresses may be null.
void copy_bytes(void* to, const void* from, std::size_t bytes);
/// Copies at most `piece` bytes at a time; copy_bytes does so where pieces are faster.
void copy_in_pieces(void* to, const void* from, std::size_t bytes, std::size_t most);

}  // namespace paceline
