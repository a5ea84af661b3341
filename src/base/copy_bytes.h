// Copies of memory that may be long.
#pragma once

#include <cstddef>

namespace paceline {

/// Copies as std::memcpy does, and at the same speed for all addresses. With no bytes, both
/// addresses may be null.
void copy_bytes(void* to, const void* from, std::size_t bytes);
/// Copies like copy_bytes, in pieces of at most `most` bytes. copy_bytes takes short pieces on
/// processors on which they are faster.
void copy_in_pieces(void* to, const void* from, std::size_t bytes, std::size_t most);

}  // namespace paceline
