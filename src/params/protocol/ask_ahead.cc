#include "params/protocol/ask_ahead.h"

#include <utility>

namespace paceline {
namespace {

// If a value that arrived ahead was not the newest one when a step needed it, the value changes
// faster than the worker fetches it. The worker then pulls the value this many times before it asks
// ahead again.
constexpr int kPullsAfterWaste = 16;

}  // namespace

bool AskAhead::must_pull(const KnownValue& value) {
  if (!value.by_fetch) return true;
  const bool settled = value.changes_after_reads ? value.next_asked : !value.changed;
  return !settled && !value.next_is_newest;
}

void AskAhead::pulled(VariableId variable, const KnownValue& value) {
  Value& known = values_[std::size_t(variable)];
  known.renewed = value.by_fetch || value.changes_after_reads;
  if (known.rest > 0) --known.rest;
  if (value.next_came) known.rest = kPullsAfterWaste;
}

bool AskAhead::waits(VariableId variable, bool next_asked, bool changes_after_reads,
                     std::int64_t step) const {
  return next_asked && changes_after_reads && values_[std::size_t(variable)].decided != step;
}

AskAhead::Decision AskAhead::needed(VariableId variable, bool newer, bool one_frame,
                                    std::int64_t step) {
  Value& known = values_[std::size_t(variable)];
  if (std::exchange(known.decided, step) == step) return {};
  const bool changes = std::exchange(known.renewed, false) || newer;
  return {.take_next = newer, .ask_next = changes && known.rest == 0 && one_frame};
}

}  // namespace paceline
