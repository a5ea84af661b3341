// Values and slots of one moment, as the ps tasks answer a read.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "net/frame.h"
#include "params/protocol/placement.h"

namespace paceline {

/// Threads of several connections fill it at once, each the pieces of its own ps.
class PendingRead {
 public:
  PendingRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
              std::span<const VariableId> asked, int num_ps);

  /// Where the bytes of a kState frame go. Throws kDataLoss unless they were asked for and follow
  /// on those that came before, so that whatever a ps sends, what is whole stays as it is.
  std::span<std::byte> place(const FrameHeader& header);
  /// The bytes of a frame of that ps, for which there is a place, have come. True: they were the
  /// last, and this may be gone.
  bool arrived(int ps, const FrameHeader& header);
  /// Bytes that have not come.
  std::int64_t missing() const { return missing_; }
  /// The first ps that owes some; any, when none does.
  int first_missing() const;
  /// Once none are missing; in the order in which they were asked for.
  std::vector<VariableState> take() { return std::move(states_); }

 private:
  void expect(const Piece& piece, const VariableSpec& spec, VariableState& state);

  std::vector<VariableState> states_;
  /// By piece; a variable's scalar slots are taken from its first piece.
  std::vector<std::int64_t> other_scalars_;
  struct Array {
    std::span<std::byte> memory;  // of `states_`, or in other_scalars_
    std::size_t arrived = 0;      // bytes
  };
  std::vector<std::vector<Array>> arrays_;      // by piece: value, then slots; empty: not asked for
  std::deque<std::atomic<std::int64_t>> owed_;  // bytes, by ps
  std::atomic<std::int64_t> missing_{0};        // their sum
};

}  // namespace paceline
