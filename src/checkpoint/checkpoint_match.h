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

}  // namespace paceline
