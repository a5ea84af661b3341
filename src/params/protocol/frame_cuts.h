// Cuts values and contributions into frames. Arithmetic only: it has no memory, thread or link.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "params/wire/message.h"
#include "params/wire/travelling_type.h"

namespace paceline {

/// The part [begin, begin + size) of a whole; one frame carries it.
struct Cut {
  std::size_t begin = 0, size = 0;
  bool operator==(const Cut&) const = default;
};

/// The parts of [0, total) in order, each of at most `most`, for a range-based for loop.
class Cuts {
 public:
  Cuts(std::size_t total, std::size_t most) : total_(total), most_(most) {}

  class Iterator {
   public:
    Iterator(std::size_t total, std::size_t most) : total_(total), most_(most) {}
    Cut operator*() const { return {begin_, std::min(most_, total_ - begin_)}; }
    Iterator& operator++() {
      begin_ += most_;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return begin_ >= total_; }

   private:
    std::size_t begin_ = 0, total_, most_;
  };
  Iterator begin() const { return {total_, most_}; }
  std::default_sentinel_t end() const { return {}; }
  /// The number of parts.
  std::size_t size() const { return (total_ + most_ - 1) / most_; }

 private:
  std::size_t total_, most_;
};

/// Returns the frames of a dense value or contribution of this many bytes.
inline Cuts byte_cuts(std::size_t bytes) { return {bytes, kChunkBytes}; }
/// Returns the frames of rows that travel with their ids (kRowValues). One frame holds at least one
/// row.
inline Cuts row_cuts(std::size_t rows, std::size_t row_bytes) {
  return {rows, std::max<std::size_t>(1, kChunkBytes / (row_bytes + sizeof(std::int32_t)))};
}

/// Returns the bytes of a kRowValues payload that precede the rows' values: the count of the rows,
/// and their ids.
inline std::size_t row_numbers_bytes(std::size_t rows) {
  return sizeof(std::uint32_t) + rows * sizeof(std::int32_t);
}

/// How the contribution to one piece gets to its ps.
struct ContributionRoute {
  std::size_t bytes = 0;  // of float32, in this piece
  std::size_t rows = 0;   // of a sparse contribution
  bool sparse = false;
  bool in_shared_memory = false;     // the ps reads the contribution in memory of the worker
  std::uint32_t memory = 0;          // the number of that shared memory
  ContributionForm travels_as = {};  // the form of the numbers in frames
  bool values_mapped = false;        // the worker reads the values in the ps's memory
  bool renew_copy = false;           // the ps copies the new values for this worker
  bool pulls_later = false;          // the worker asks for the new values by itself
};

struct ContributionFrame {
  MessageType type{};
  std::uint16_t flags = 0;
  Cut part;                       // kChunk: bytes of float32
  std::size_t payload_bytes = 0;  // on the wire
};

/// The flags of kContribution.
inline std::uint16_t flags_of(const ContributionRoute& route) {
  const std::uint32_t wanted = route.pulls_later     ? 0
                               : route.renew_copy    ? kRenewCopy
                               : route.values_mapped ? 0
                                                     : std::uint32_t{kSendValues};
  return std::uint16_t(route.memory * kMemoryNumber + wanted);
}

/// Calls send(const ContributionFrame&) for every frame of the contribution, in order. A sparse
/// contribution sends its row ids even if there are none, since the rule counts contributions.
template <typename F>
void for_contribution_frames(const ContributionRoute& route, F&& send) {
  const std::size_t numbers = route.rows * sizeof(std::int32_t);
  if (route.in_shared_memory) {
    return send(ContributionFrame{MessageType::kContribution, flags_of(route), {}, numbers});
  }
  if (route.sparse) send(ContributionFrame{MessageType::kRowIds, 0, {}, numbers});
  for (const Cut part : byte_cuts(route.bytes)) {
    send(ContributionFrame{MessageType::kChunk, route.pulls_later ? kPullsLater : std::uint16_t{0},
                           part, travelling_bytes(part.size, route.travels_as)});
  }
}

/// What the worker awaits before it reads the value again: the number of bytes of new values in the
/// answer; 1 for the message that the values in shared memory are new; 0 if the answer brings
/// neither.
inline std::size_t awaited_after(const ContributionRoute& route) {
  if (route.values_mapped) return route.in_shared_memory ? 1 : 0;
  return route.sparse || route.pulls_later ? 0 : route.bytes;
}

}  // namespace paceline
