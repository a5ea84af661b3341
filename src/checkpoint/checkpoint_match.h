// Checks whether a checkpoint belongs to the model that is about to train.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"

namespace paceline {

/// True when a variable's slots have the same meaning in both checkpoints.
bool of_same_rule(const SavedVariable& a, const SavedVariable& b);

/// One line for each variable that only one of them has, or that differs in shape, dtype or the
/// rule of a step, or in the slots of the same rule; pieces do not count. Whether the rule of a
/// step or one over several local steps was applied does not count. Empty: it can be resumed from.
std::vector<std::string> differences(std::span<const SavedVariable> saved,
                                     std::span<const SavedVariable> model);

/// Returns the first difference between the data names of a checkpoint and those of this run, as a
/// sentence; empty: there is none. Kinds that only one of them has are not compared.
std::string first_difference(const DataNames& saved, const DataNames& data);

}  // namespace paceline
