// A plan: a graph compiled for a device. Topological schedule, buffer lifetimes, one arena laid
// out once; where variables are first needed and where contributions become ready.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/parameter_store.h"
#include "graph/rewrite.h"
#include "kernels/device.h"
#include "paceline/minimize.h"

namespace paceline {

/// What a plan computes: fetched values, and for a train step the updates.
struct PlanRequest {
  const Graph* graph = nullptr;
  std::vector<Value> fetches;           // to be read after each step
  const Training* training = nullptr;   // null: nothing is updated
  bool run_assignments = true;          // local variables change
  RewriteOptions rewrite;
};

/// A slot is where a value lives during a step: fixed memory, or given by the store each step.
using SlotIndex = int;

/// Steps of the schedule, in order.
struct Instruction {
  enum class Kind : std::uint8_t {
    kNeed,    // slot ← store.need(variable)
    kPlace,   // slot ← store.place(variable)
    kRun,     // kernel
    kReady,   // store.ready(variable): after the last read of the variable and the contribution
    kCopy,    // slot ← input slot, same bytes (locals; contributions that are no kernel's output)
  };
  Kind kind;
  VariableId variable = -1;
  int kernel = -1;                 // index into Plan::kernels
  std::vector<SlotIndex> inputs;   // kRun; kCopy: one
  std::vector<SlotIndex> outputs;  // kRun; kCopy, kNeed, kPlace: one
};

class Plan;

/// Names of the variables of `graph` to ids in `specs`. Throws kNotFound.
/// Makes the plan: rewrites the graph, schedules, lays out memory, makes kernels.
std::unique_ptr<Plan> make_plan(const PlanRequest& request, std::span<const VariableSpec> specs,
                                Device& device);

/// The store's list for several graphs: every variable once, by name; a training gives rule,
/// weight decay and sparseness. Throws kInvalidArgument when graphs disagree on one, naming it.
std::vector<VariableSpec> variable_specs(std::span<const Graph* const> graphs,
                                         const Training* training);

}  // namespace paceline
