// --strategy auto for a program that starts its own tasks: chooses the way to distribute that is
// expected to be the fastest of those that the other flags leave open.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"
#include "predict/shapes_to_try.h"

namespace paceline {

/// True if the flags ask for the fastest way: --strategy auto in a process that may start the
/// tasks. Tasks that are started one by one follow a rule instead (automatic_strategy), so that all
/// of them choose the same way.
bool leaves_shape_open(const FlagValues& values, const Cluster& cluster);

/// Returns the predictions, the best one first. A way with local steps must be a tenth faster than
/// others, since each of its steps learns less, and several tasks a fiftieth faster than one
/// process.
std::vector<Prediction> by_preference(std::vector<Prediction> predictions);

/// Returns the program's arguments, in which the flags of a way replace --strategy auto. Flags that
/// the user gave stay as they are.
std::vector<std::string> with_shape(const std::vector<std::string>& arguments,
                                    const FlagValues& values, const JobShape& shape);

/// Returns the arguments with the best of these ways that `check` accepts; `check` throws kUsage
/// for a way that does not go with other flags. If it accepts none, the arguments stay as they are.
/// Prints on stdout what was chosen, unless --quiet was given.
std::vector<std::string> with_fastest_shape(
    const std::vector<std::string>& arguments, const FlagValues& values,
    std::vector<Prediction> predictions,
    const std::function<void(const std::vector<std::string>&)>& check);

}  // namespace paceline
