// Decides when workers that make local steps exchange which variables. A plain table: it has no
// thread, link or clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The variables are divided into fragments. In `local_steps` own steps a worker exchanges each
/// fragment once, one in each round. To keep a link evenly busy, the steps after a round are in
/// proportion to the bytes of that round's fragment: a fragment with a third of all bytes is
/// followed by a third of the steps.
class OuterSchedule {
 public:
  /// `bytes` has the number of bytes that each variable sends; 0: the variable is not trained.
  /// Makes at most `fragments` fragments: no more than local steps, and no more than variables that
  /// send something, but at least one.
  OuterSchedule(std::span<const std::int64_t> bytes, std::int64_t local_steps, int fragments);

  int fragments() const { return int(variables_.size()); }
  int fragment_of_round(std::int64_t round) const { return int(round % fragments()); }
  std::span<const VariableId> variables_of(int fragment) const {
    return variables_[std::size_t(fragment)];
  }
  /// Returns how many own steps a worker has made after this many rounds.
  std::int64_t steps_of(std::int64_t rounds) const;
  /// Returns how many rounds are complete after this many own steps.
  std::int64_t rounds_of(std::int64_t steps) const;
  /// Returns how many rounds begin within this many own steps.
  std::int64_t rounds_for(std::int64_t steps) const;
  /// Returns the number of own steps between the previous round and this round.
  std::int64_t length(std::int64_t round) const { return steps_of(round + 1) - steps_of(round); }

 private:
  const std::int64_t local_steps_;
  std::vector<std::vector<VariableId>> variables_;  // by fragment
  /// By fragment: how many steps of a period a worker makes before the fragment's round.
  std::vector<std::int64_t> offsets_;
};

}  // namespace paceline
