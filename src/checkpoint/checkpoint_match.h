// Checks whether a checkpoint is of the model that is to be trained.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"

namespace paceline {

/// True when the slots of a variable in one checkpoint mean what they mean in the other.
bool of_same_rule(const SavedVariable& a, const SavedVariable& b);

/// One line for each variable that only one of them has, or that differs in shape, dtype or the
/// rule of a step, or in the slots of the same rule; pieces do not count. Whether the rule of a
/// step or one over several local steps was applied does not count. Empty: it can be resumed from.
std::vector<std::string> differences(std::span<const SavedVariable> saved,
                                     std::span<const SavedVariable> model);

/// The first difference between the names of a checkpoint's data and those of the data at hand, as
/// a sentence; empty: there is none. Kinds that only one of them has are not compared.
std::string first_difference(const DataNames& saved, const DataNames& data);

}  // namespace paceline
