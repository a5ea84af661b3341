// Lays out buffers that are not all alive at the same time in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline {

/// A buffer that is alive from position `first` to `last` of the schedule, both included.
struct ArenaBuffer {
  std::size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  // by buffer; multiples of kBufferAlignment
  std::size_t bytes = 0;
  std::int64_t looks = 0;  // how often taken memory was looked for: a measure of the work
};

/// Places the largest buffer first, and each at the lowest offset where it meets no buffer that is
/// alive with it. No two buffers share an offset while both are alive, not even empty ones.
ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers);

}  // namespace paceline
