// For copies that may be long.
#pragma once

#include <cstddef>

namespace paceline {

/// As std::memcpy, and as fast wherever both begin; of no bytes also from or to null.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace paceline
