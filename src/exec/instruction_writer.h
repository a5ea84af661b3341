// Turns a schedule into instructions, with the store's calls and the copies between the kernels.
#pragma once

#include <span>

#include "exec/node_order.h"
#include "exec/plan_roots.h"
#include "exec/value_memory.h"
#include "exec/variable_reads.h"

namespace paceline {

struct PlannedCopy {
  SlotIndex from, to;
};

/// A contribution, where it is written and when it is handed over. It is *settled* before the node
/// at that position runs: by then every kernel that reads the variable or the contribution has run.
struct PlacedUpdate {
  PlannedUpdate root;
  SlotIndex place = -1;
  int written_by = -1;  // the position of its kernel; −1 when it is copied once it is settled
  int settled = 0;
  bool streamed = false;  // it goes to the store's sink while it is made
  bool lends = false;     // its kernel may leave it where it lies
};

/// The parts of a step, each in the order in which it is to be done.
struct StepSchedule {
  const NodeOrder& order;
  std::span<const VariableReads> reads;
  std::span<const PlacedUpdate> updates;
  std::span<const PlannedCopy> last_copies;  // are made at the end, before anything changes
  std::span<const PlannedCopy> assignments;  // are made after those
};

/// Fills plan.instructions and plan.prologue. `memory` must know all reads.
void write_instructions(const StepSchedule& step, const ValueMemory& memory, Plan& plan);

}  // namespace paceline
