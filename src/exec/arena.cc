#include "exec/arena.h"

#include <algorithm>
#include <numeric>

#include "base/buffer.h"
#include "exec/occupied_memory.h"

namespace paceline {
namespace {

std::size_t footprint(const ArenaBuffer& buffer) {
  return round_up(std::max<std::size_t>(buffer.bytes, 1), kBufferAlignment);
}

OccupiedMemory::Positions positions_of(std::span<const ArenaBuffer> buffers) {
  OccupiedMemory::Positions all;
  for (const ArenaBuffer& buffer : buffers) {
    all.first = std::min(all.first, buffer.first);
    all.last = std::max(all.last, buffer.last);
  }
  return all;
}

}  // namespace

ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers) {
  std::vector<std::size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, [&](std::size_t a, std::size_t b) {
    return footprint(buffers[a]) > footprint(buffers[b]);
  });

  ArenaLayout layout{std::vector<std::size_t>(buffers.size())};
  OccupiedMemory taken(positions_of(buffers));
  for (const std::size_t i : by_size) {
    const OccupiedMemory::Positions alive = {buffers[i].first, buffers[i].last};
    const std::size_t offset = taken.lowest_free(alive, footprint(buffers[i]));
    const std::size_t end = offset + footprint(buffers[i]);
    taken.take(alive, {offset, end});
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, end);
  }
  layout.looks = taken.looks();
  return layout;
}

}  // namespace paceline
