// The value that was asked for arrives in memory of its own (pulled_value.h), and the next step
// takes it. If a step knows of a newer version when it begins, it pulls that one instead.
#include "params/worker/fetch_ahead.h"

namespace paceline {

FetchAhead::FetchAhead(WorkerContext& context)
    : context_(context), core_(context.core), machine_(core_.variables().size()) {}

// A thread of the link notes that the next value is there before it notes the version. Since both
// are read in this order, a value that arrives in between is not pulled as well.
KnownValue FetchAhead::known(VariableId variable) const {
  KnownValue known;
  known.by_fetch = context_.held[std::size_t(variable)] == Freshness::kByFetch;
  known.changes_after_reads = core_.changes_after_reads(variable);
  known.next_asked = core_.pulled(variable).next_asked();
  known.changed = core_.changed(variable);
  known.next_came = core_.pulled(variable).next_came();
  known.next_is_newest = core_.next_is_newest(variable);
  return known;
}

bool FetchAhead::must_pull(VariableId variable) const {
  return AskAhead::must_pull(known(variable));
}

void FetchAhead::note_pulled(VariableId variable) { machine_.pulled(variable, known(variable)); }

bool FetchAhead::waits(VariableId variable) const {
  return machine_.waits(variable, core_.pulled(variable).next_asked(),
                        core_.changes_after_reads(variable), context_.uses);
}

bool FetchAhead::fits_one_frame(VariableId variable) const {
  const std::span<const Piece> pieces = core_.pieces_of(variable);
  if (pieces.size() != 1 || core_.variables()[std::size_t(variable)].sparse) return false;
  const std::size_t bytes = core_.bytes_of(pieces.front());
  return bytes > 0 && bytes <= kChunkBytes;
}

void FetchAhead::go_on(VariableId variable) {
  const AskAhead::Decision decision = machine_.needed(variable, core_.next_is_newer(variable),
                                                      fits_one_frame(variable), context_.uses);
  if (decision.take_next) core_.take_next(variable);
  if (!decision.ask_next) return;
  core_.pulled(variable).ask_next();
  const Piece& piece = core_.pieces_of(variable).front();
  context_.connection(piece).send(MessageType::kPullNext,
                                  {.id = piece.id, .step = core_.held_version(piece)}, {}, nullptr,
                                  nullptr);
}

}  // namespace paceline
