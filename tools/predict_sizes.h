// A prediction for any system's model, of which only sizes are known.
#pragma once

#include "cluster/flags/command_line.h"
#include "predict/sized_job.h"

namespace paceline {

std::vector<Flag> sized_flags();
/// Throws kUsage.
SizedJob read_sized_job(const FlagValues& values);

std::string sized_text(const SizedJob& job);

}  // namespace paceline
