#include "exec/arena.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <numeric>
#include <vector>

#include "base/buffer.h"

namespace paceline {
namespace {

// The bytes of an arena that are taken in each position of a schedule.

/// Ranges of bytes [begin, end), in order; ranges that touch or overlap are one.
class ByteRanges {
 public:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  explicit ByteRanges(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : ranges_(memory) {}
  void add(Range range);
  /// The first range that ends above `offset`; null when there is none.
  const Range* first_above(std::size_t offset) const;

 private:
  std::pmr::vector<Range> ranges_;
};

/// A tree over the positions of a schedule. Buffers that lie close together are few ranges in each
/// of its nodes, so that a search takes the logarithm of the number of positions, and not the
/// number of buffers.
class OccupiedMemory {
 public:
  /// The positions [first, last], both included, as all that follow.
  struct Positions {
    int first = 0, last = 0;
  };
  explicit OccupiedMemory(Positions all);
  void take(Positions alive, ByteRanges::Range bytes);
  /// The lowest offset from which so many bytes are free in all of these positions.
  std::size_t lowest_free(Positions alive, std::size_t bytes);
  /// How often a range was looked for: a measure of the work.
  std::int64_t looks() const { return looks_; }

 private:
  struct Node {
    explicit Node(std::pmr::memory_resource* memory) : somewhere(memory), everywhere(memory) {}
    ByteRanges somewhere;   // taken in some of the node's positions
    ByteRanges everywhere;  // taken in all of them, each range by one buffer
  };
  struct Place {
    std::size_t node = 0;
    Positions of;
  };
  Place root() const { return {1, all_}; }
  static Place left(const Place& place);
  static Place right(const Place& place);
  void take_in(const Place& place, Positions alive, ByteRanges::Range bytes);
  void collect(const Place& place, Positions alive, std::vector<const ByteRanges*>& taken) const;

  Positions all_;
  std::pmr::monotonic_buffer_resource memory_;  // of the ranges of all nodes
  std::vector<Node> nodes_;                     // the children of node i are 2i and 2i + 1
  std::int64_t looks_ = 0;
};

bool apart(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first > b.last || b.first > a.last;
}

bool covers(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first <= b.first && b.last <= a.last;
}

void ByteRanges::add(Range range) {
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &Range::end);
  const auto last = std::ranges::upper_bound(ranges_, range.end, {}, &Range::begin);
  if (first == last) {
    ranges_.insert(first, range);
    return;
  }
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(std::prev(last)->end, range.end);
  ranges_.erase(std::next(first), last);
}

const ByteRanges::Range* ByteRanges::first_above(std::size_t offset) const {
  const auto found = std::ranges::upper_bound(ranges_, offset, {}, &Range::end);
  return found == ranges_.end() ? nullptr : &*found;
}

OccupiedMemory::OccupiedMemory(Positions all) : all_(all) {
  const std::size_t nodes = 2 * std::bit_ceil(std::size_t(all.last - all.first) + 1);
  nodes_.reserve(nodes);
  for (std::size_t i = 0; i < nodes; ++i) nodes_.emplace_back(&memory_);
}

OccupiedMemory::Place OccupiedMemory::left(const Place& place) {
  return {2 * place.node, {place.of.first, std::midpoint(place.of.first, place.of.last)}};
}

OccupiedMemory::Place OccupiedMemory::right(const Place& place) {
  return {2 * place.node + 1, {std::midpoint(place.of.first, place.of.last) + 1, place.of.last}};
}

void OccupiedMemory::take(Positions alive, ByteRanges::Range bytes) {
  take_in(root(), alive, bytes);
}

void OccupiedMemory::take_in(const Place& place, Positions alive, ByteRanges::Range bytes) {
  if (apart(place.of, alive)) return;
  Node& node = nodes_[place.node];
  node.somewhere.add(bytes);
  if (covers(alive, place.of)) return node.everywhere.add(bytes);
  take_in(left(place), alive, bytes);
  take_in(right(place), alive, bytes);
}

std::size_t OccupiedMemory::lowest_free(Positions alive, std::size_t bytes) {
  std::vector<const ByteRanges*> taken;
  collect(root(), alive, taken);
  std::size_t offset = 0;
  // Each of them has let the offset stay since it was last moved when all have.
  for (std::size_t i = 0, stayed = 0; stayed < taken.size(); i = (i + 1) % taken.size()) {
    ++looks_;
    const ByteRanges::Range* range = taken[i]->first_above(offset);
    const bool fits = range == nullptr || range->begin >= offset + bytes;
    stayed = fits ? stayed + 1 : 0;
    if (!fits) offset = range->end;
  }
  return offset;
}

void OccupiedMemory::collect(const Place& place, Positions alive,
                             std::vector<const ByteRanges*>& taken) const {
  if (apart(place.of, alive)) return;
  const Node& node = nodes_[place.node];
  if (covers(alive, place.of)) return taken.push_back(&node.somewhere);
  taken.push_back(&node.everywhere);
  collect(left(place), alive, taken);
  collect(right(place), alive, taken);
}

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
