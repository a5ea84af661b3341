// A prediction for any system's model, of which only sizes are known.
#pragma once

#include "cli/flags/command_line.h"
#include "predict/shapes_to_try.h"
#include "predict/sized_job.h"

namespace paceline {

std::vector<Flag> sized_flags();
/// Throws kUsage.
SizedJob read_sized_job(const FlagValues& values);

/// Returns what the flags fix of the ways that are compared.
ShapesAsked read_sized_shapes(const FlagValues& values, const SizedJob& job);

/// Prints the speed of the job's own way, and a table of the ways that were asked for, which grows
/// for `limit_s` at most.
void print_sized(const SizedJob& job, const ShapesAsked& asked, double limit_s);

}  // namespace paceline
