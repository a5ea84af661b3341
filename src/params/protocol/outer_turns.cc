#include "params/protocol/outer_turns.h"

#include <algorithm>

namespace paceline {

void OuterTurns::step_made() {
  if (++made_ < schedule_.length(next_round())) return;
  made_ = 0;
  due_ = true;
}

// With several fragments, one of them may stay under way while the worker makes steps. With a
// single fragment, the worker waits for its values.
std::optional<OuterTurns::Act> OuterTurns::next() const {
  const bool waits = schedule_.fragments() == 1 && !under_way_.empty();
  if (!due_ && !waits) return {};
  if (unsettled_) return Act{Act::Kind::kSettle};
  if (under_way_.size() > 1 || waits) return Act{Act::Kind::kTakeOver, under_way_.front()};
  const int fragment = schedule_.fragment_of_round(next_round());
  if (std::ranges::find(under_way_, fragment) != under_way_.end()) {
    return Act{Act::Kind::kTakeOver, fragment};
  }
  return Act{Act::Kind::kContribute, fragment};
}

void OuterTurns::settled(std::int64_t rounds) {
  unsettled_ = false;
  counted_ = rounds;
}

void OuterTurns::took_over(int fragment) { std::erase(under_way_, fragment); }

void OuterTurns::contributed() {
  under_way_.push_back(schedule_.fragment_of_round(next_round()));
  due_ = false;
  unsettled_ = true;
  if (contributed_) ++*contributed_;
}

}  // namespace paceline
