// For copies that may be long.
#pragma once

#include <cstddef>

namespace paceline {

/// As std::memcpy, and as fast wherever both begin; of no bytes also from or to null.
void copy_bytes(void* to, const void* from, std::size_t bytes);
/// The same, of at most so many bytes at a time: how copy_bytes does it where that is faster.
void copy_in_pieces(void* to, const void* from, std::size_t bytes, std::size_t most);

}  // namespace paceline
