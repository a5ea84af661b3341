// Values and slots of one moment, as the ps tasks answer a read.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "net/frame.h"
#include "params/placement.h"

namespace paceline {

/// Threads of several connections fill it at once, each the pieces of its own ps.
class StateRead {
 public:
  /// Specs and pieces must outlive it.
  StateRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
            std::span<const VariableId> asked, int num_ps);

  /// Where the bytes of a kState frame go. Throws kDataLoss unless they were asked for and follow
  /// on those that came before, so that whatever a ps sends, what is whole stays as it is.
  std::span<std::byte> place(const FrameHeader& header);
  /// Bytes of a piece on that ps, which were placed, have come.
  void arrived(int ps, std::size_t bytes) { missing_[std::size_t(ps)] -= std::int64_t(bytes); }
  /// Bytes that have not come.
  std::int64_t missing() const;
  /// The first ps that owes some.
  int first_missing() const;
  /// Once none are missing; in the order in which they were asked for.
  std::vector<VariableState> take() { return std::move(states_); }

 private:
  VariableState empty_state(VariableId variable) const;
  std::span<std::byte> array(const Piece& piece, std::size_t number);

  const std::span<const VariableSpec> specs_;
  const std::span<const Piece> pieces_;
  std::vector<VariableState> states_;
  std::vector<int> index_;  // of a state, by variable; −1: not asked for
  /// By piece; a variable's scalar slots are taken from its first piece.
  std::vector<std::int64_t> other_scalars_;
  std::vector<std::vector<std::size_t>> placed_;   // bytes, by piece and array
  std::deque<std::atomic<std::int64_t>> missing_;  // bytes, by ps
};

}  // namespace paceline
