// A store's calls in a step, seen on a timeline.
#pragma once

#include <memory>
#include <span>

#include "exec/parameter_store.h"
#include "trace/timeline.h"

namespace paceline {

/// What `steps` does, with an event for each call: "need w", "place w", "ready w", "begin_step",
/// "end_step". `variables` are the store's. `timeline` must outlive it.
std::unique_ptr<StoreSteps> make_traced_steps(std::unique_ptr<StoreSteps> steps,
                                              std::span<const VariableSpec> variables,
                                              Timeline& timeline);

}  // namespace paceline
