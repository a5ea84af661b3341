// Checks whether a checkpoint is of the model that is to be trained.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"

namespace paceline {

/// One line for each variable that only one of them has, or that differs in shape, dtype, rule or
/// slots; pieces do not count. Empty: it can be resumed from.
std::vector<std::string> differences(std::span<const SavedVariable> saved,
                                     std::span<const SavedVariable> model);

/// The first difference between the names of a checkpoint's data and those of the data at hand, as
/// a sentence; empty: there is none. Kinds that only one of them has are not compared.
std::string first_difference(const DataNames& saved, const DataNames& data);

}  // namespace paceline
