// The steps of one plan on a worker's store: which values a step asks for, and how its
// contributions travel to the shards.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/parameter_store.h"
#include "params/protocol/value_requests.h"
#include "params/worker/ps_connection.h"
#include "params/worker/worker_driver.h"
#include "params/worker/worker_state.h"

namespace paceline {

/// The state that the steps of all plans of one worker's store share. One step thread uses it.
struct WorkerContext {
  WorkerState& core;
  std::vector<std::unique_ptr<PsConnection>>& connections;
  WorkerDriver& driver;
  std::vector<Freshness> held;  // by variable
  std::int64_t uses = 0;        // steps begun and ended, writes and reads
  std::int64_t skipped = 0;     // contributions with NaN
  std::uint32_t shared_memories = 0;
  std::size_t shared_bytes = 0;
  const void* ordered_by = nullptr;  // the PsSteps whose order of pieces the ps tasks know

  PsConnection& connection(const Piece& piece) const { return *connections[std::size_t(piece.ps)]; }
  /// Waits until the last contribution to the variable was taken, and its space is free. Throws
  /// kDeadlineExceeded.
  void wait_until_taken(VariableId variable) const {
    const ContributionBuffer& space = core.space(variable);
    if (core.wait_for_reply([&] { return space.in_flight == 0; })) return;
    core.fail_late(
        "the contribution to " + core.variables()[std::size_t(variable)].name + " was not taken",
        "by " + connection(core.pieces_of(variable).front()).text());
  }
};

/// Returns the steps of a plan. `context` must outlive them. Throws kInvalidArgument when the plan
/// updates a variable that is not trained. In rounds the store clips by `clip_norm`; otherwise the
/// plan clips, if `clip_norm` is above 0.
std::unique_ptr<StoreSteps> make_ps_steps(WorkerContext& context, const PlanBinding& plan,
                                          float clip_norm);

}  // namespace paceline
