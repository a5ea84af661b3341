// Decides when workers that make local steps exchange which variables. A plain table: no thread,
// link or clock inside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/parameter_store.h"

namespace paceline {

/// The variables are divided into fragments, and in `local_steps` own steps a worker exchanges each
/// of them once, one in each round. Before a round it makes as many steps as the fragment of the
/// round before has a share of the bytes, so that a link is evenly busy.
class OuterSchedule {
 public:
  /// `bytes` are those that each variable sends, 0 for one that is not trained. There is at least
  /// one fragment, and there are at most so many as steps, and as variables that send something.
  OuterSchedule(std::span<const std::int64_t> bytes, std::int64_t local_steps, int fragments);

  int fragments() const { return int(variables_.size()); }
  int fragment_of_round(std::int64_t round) const { return int(round % fragments()); }
  std::span<const VariableId> variables_of(int fragment) const {
    return variables_[std::size_t(fragment)];
  }
  /// The own steps of a worker that has made so many rounds.
  std::int64_t steps_of(std::int64_t rounds) const;
  /// The whole rounds of so many own steps.
  std::int64_t rounds_of(std::int64_t steps) const;
  /// The rounds that so many own steps begin.
  std::int64_t rounds_for(std::int64_t steps) const;
  /// The steps that lead to the round.
  std::int64_t length(std::int64_t round) const { return steps_of(round + 1) - steps_of(round); }

 private:
  const std::int64_t local_steps_;
  std::vector<std::vector<VariableId>> variables_;  // by fragment
  std::vector<std::int64_t> offsets_;  // by fragment: steps of a period until its round
};

}  // namespace paceline
