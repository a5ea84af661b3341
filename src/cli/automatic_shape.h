// --strategy auto of a program that starts its tasks itself: it takes the way to distribute that is
// expected to be the fastest, of those that the other flags leave open.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"
#include "predict/shapes_to_try.h"

namespace paceline {

/// True when the flags ask for the way that is expected to be the fastest: --strategy auto where
/// this process may start the tasks. Tasks that are started one by one follow a rule instead
/// (automatic_strategy), by which all of them choose the same.
bool leaves_shape_open(const FlagValues& values, const Cluster& cluster);

/// Returns the predictions, the best one first. Local steps must be a tenth faster, since each
/// learns less, and several tasks a fiftieth faster than one process.
std::vector<Prediction> by_preference(std::vector<Prediction> predictions);

/// The arguments of the program with the flags of a way in place of --strategy auto. Flags that
/// the user gave stay the user's.
std::vector<std::string> with_shape(const std::vector<std::string>& arguments,
                                    const FlagValues& values, const JobShape& shape);

/// The arguments with the best of these ways that `check` lets pass; it throws kUsage for one that
/// other flags do not go with. Without any the arguments stay as they are. Says on stdout what was
/// chosen, unless --quiet was given.
std::vector<std::string> with_fastest_shape(
    const std::vector<std::string>& arguments, const FlagValues& values,
    std::vector<Prediction> predictions,
    const std::function<void(const std::vector<std::string>&)>& check);

}  // namespace paceline
