// Shows a store's calls in a step on a timeline.
#pragma once

#include <memory>
#include <span>

#include "exec/parameter_store.h"
#include "trace/timeline.h"

namespace paceline {

/// Makes steps that do what `steps` does and record an event for each call: "need w", "place w",
/// "ready w", "begin_step", "end_step". `variables` are the store's. `timeline` must outlive them.
std::unique_ptr<StoreSteps> make_traced_steps(std::unique_ptr<StoreSteps> steps,
                                              std::span<const VariableSpec> variables,
                                              Timeline& timeline);

}  // namespace paceline
