// Which bytes of an arena are taken in which positions of a schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace paceline {

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

}  // namespace paceline
