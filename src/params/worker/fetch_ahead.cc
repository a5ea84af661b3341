#include "params/worker/fetch_ahead.h"

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

// After a value that came ahead and was not the newest when it was needed: it changes faster than
// it is fetched.
constexpr int kPullsAfterWaste = 16;

}  // namespace

FetchAhead::FetchAhead(WorkerContext& state)
    : state_(state), core_(state.core), fetched_(core_.variables().size()) {}

const VariableSpec& FetchAhead::spec(VariableId variable) const {
  return core_.variables()[std::size_t(variable)];
}

bool FetchAhead::may_have_come(const std::vector<PlanBinding::Use>& uses) const {
  return std::ranges::any_of(uses, [this](const PlanBinding::Use& use) {
    return core_.pulled(use.variable).next_asked() || fetched_[std::size_t(use.variable)].rest > 0;
  });
}

bool FetchAhead::must_pull(VariableId variable) const {
  if (state_.held[std::size_t(variable)] != Freshness::kByFetch) return true;
  // What comes ahead is known of when it is there. In this order it is not pulled as well, when it
  // comes between.
  if (core_.changes_after_reads(variable) ? core_.pulled(variable).next_asked()
                                          : !core_.changed(variable)) {
    return false;
  }
  return !core_.next_is_newest(variable);
}

void FetchAhead::note_pulled(VariableId variable) {
  Fetched& fetched = fetched_[std::size_t(variable)];
  fetched.renewed = state_.held[std::size_t(variable)] == Freshness::kByFetch ||
                    core_.changes_after_reads(variable);
  if (fetched.rest > 0) --fetched.rest;
  if (core_.pulled(variable).next_came()) fetched.rest = kPullsAfterWaste;
}

bool FetchAhead::waits(VariableId variable) const {
  return core_.pulled(variable).next_asked() && core_.changes_after_reads(variable) &&
         fetched_[std::size_t(variable)].gone_on != state_.uses;
}

bool FetchAhead::can_ask(VariableId variable) const {
  const std::span<const Piece> pieces = core_.pieces_of(variable);
  if (pieces.size() != 1 || spec(variable).sparse) return false;
  const std::size_t bytes = core_.bytes_of(pieces.front());
  return bytes > 0 && bytes <= kChunkBytes;
}

void FetchAhead::go_on(VariableId variable) {
  Fetched& fetched = fetched_[std::size_t(variable)];
  if (std::exchange(fetched.gone_on, state_.uses) == state_.uses) return;
  const bool came = core_.next_is_newer(variable);
  if (came) core_.take_next(variable);
  const bool changes = std::exchange(fetched.renewed, false) || came;
  if (!changes || fetched.rest > 0 || !can_ask(variable)) return;
  core_.pulled(variable).ask_next();
  const Piece& piece = core_.pieces_of(variable).front();
  state_.connection(piece).send(MessageType::kPullNext,
                                {.id = piece.id, .step = core_.held_version(piece)}, {}, nullptr,
                                nullptr);
}

}  // namespace paceline
