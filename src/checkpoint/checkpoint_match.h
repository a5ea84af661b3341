// Checks whether a checkpoint belongs to the model that is about to train.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"

namespace paceline {

/// True if a variable's slots have the same meaning in both checkpoints.
bool of_same_rule(const SavedVariable& a, const SavedVariable& b);

/// Returns one line for each variable that only one side has, or that differs in its shape, its
/// type, the rule of a step, or the slots of the same rule. How it is split into pieces does not
/// matter, nor whether its rule was applied to each step or to several local steps. If the result
/// is empty, the model can resume from the checkpoint.
std::vector<std::string> differences(std::span<const SavedVariable> saved,
                                     std::span<const SavedVariable> model);

/// Returns, as a sentence, the first difference between the data names of a checkpoint and those of
/// this run; empty if there is none. Kinds of names that only one side has are not compared.
std::string first_difference(const DataNames& saved, const DataNames& data);

}  // namespace paceline
