// The slots of a checkpoint, for a job whose strategy may be another one than that which saved it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_reader.h"
#include "params/savable_store.h"
#include "train/initial_state.h"

namespace paceline {

/// The variables of a store as a checkpoint of it has them.
std::vector<SavedVariable> variables_as_saved(const SavableStore& store);

/// Takes the values of a checkpoint that has the variables of `store`, and the slots that mean the
/// same here. Those of a step's rule (Adam's moments) are the variables' own, except where workers
/// make local steps: then each worker has its own, as a part of its state (`beginning.tasks`), and
/// the variables have those of the outer rule. Slots that the checkpoint lacks begin anew; `say`
/// gets a line that tells it.
void take_values_and_slots(InitialState& beginning, const SavableStore& store,
                           const CheckpointReader& reader,
                           const std::function<void(const std::string&)>& say);

}  // namespace paceline
