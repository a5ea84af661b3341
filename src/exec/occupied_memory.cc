#include "exec/occupied_memory.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace paceline {
namespace {

bool apart(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first > b.last || b.first > a.last;
}

bool covers(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first <= b.first && b.last <= a.last;
}

}  // namespace

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

}  // namespace paceline
