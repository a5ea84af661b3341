// Decides when workers that make local steps exchange which variables. A plain table: it has no
// thread, link or clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The variables are divided into fragments. In `local_steps` own steps a worker exchanges each
/// fragment once, one in each round. The share of these steps before a round is the share of all
/// bytes that the fragment of the round before has, so that a link is evenly busy.
class OuterSchedule {
 public:
  /// `bytes` has the bytes that each variable sends, 0 for one that is not trained. There is at
  /// least one fragment. There are at most as many as steps, and as variables that send something.
  OuterSchedule(std::span<const std::int64_t> bytes, std::int64_t local_steps, int fragments);

  int fragments() const { return int(variables_.size()); }
  int fragment_of_round(std::int64_t round) const { return int(round % fragments()); }
  std::span<const VariableId> variables_of(int fragment) const {
    return variables_[std::size_t(fragment)];
  }
  /// The own steps of a worker that has made this many rounds.
  std::int64_t steps_of(std::int64_t rounds) const;
  /// The whole rounds of this many own steps.
  std::int64_t rounds_of(std::int64_t steps) const;
  /// The rounds that begin in this many own steps.
  std::int64_t rounds_for(std::int64_t steps) const;
  /// The number of steps that lead to the round.
  std::int64_t length(std::int64_t round) const { return steps_of(round + 1) - steps_of(round); }

 private:
  const std::int64_t local_steps_;
  std::vector<std::vector<VariableId>> variables_;  // by fragment
  std::vector<std::int64_t> offsets_;  // by fragment: steps of a period until its round
};

}  // namespace paceline
