// Where in one arena buffers lie that are not all alive at the same time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace paceline {

/// Alive from position `first` to `last` of the schedule, both included.
struct ArenaBuffer {
  std::size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  // by buffer, multiples of kBufferAlignment
  std::size_t bytes = 0;
};

/// Largest first, each at the lowest offset where it meets no buffer that is alive with it. No two
/// buffers share an offset while both are alive, empty ones included.
ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers);

}  // namespace paceline
