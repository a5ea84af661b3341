#include "exec/arena.h"

#include <algorithm>
#include <numeric>

#include "base/buffer.h"

namespace paceline {
namespace {

std::size_t footprint(const ArenaBuffer& buffer) {
  return round_up(std::max<std::size_t>(buffer.bytes, 1), kBufferAlignment);
}

bool meet(const ArenaBuffer& a, const ArenaBuffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers) {
  std::vector<std::size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, [&](std::size_t a, std::size_t b) {
    return footprint(buffers[a]) > footprint(buffers[b]);
  });

  ArenaLayout layout{std::vector<std::size_t>(buffers.size()), 0};
  std::vector<std::size_t> placed;  // in the order of their offsets
  for (const std::size_t i : by_size) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!meet(buffers[i], buffers[other])) continue;
      if (layout.offsets[other] >= offset + footprint(buffers[i])) break;
      offset = std::max(offset, layout.offsets[other] + footprint(buffers[other]));
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + footprint(buffers[i]));
    placed.insert(std::ranges::upper_bound(placed, offset, {},
                                           [&](std::size_t p) { return layout.offsets[p]; }),
                  i);
  }
  return layout;
}

}  // namespace paceline
