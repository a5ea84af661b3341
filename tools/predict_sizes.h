// A prediction for any system's model, of which only sizes are known.
#pragma once

#include "cluster/flags/command_line.h"
#include "predict/sized_job.h"

namespace paceline {

std::vector<Flag> sized_flags();
/// Throws kUsage.
SizedJob read_sized_job(const FlagValues& values);
/// "332MB/s,350us": the rate of a stream and the time of a message. Throws kUsage.
void read_transport(const std::string& text, SizedJob& job);

std::string sized_text(const SizedJob& job);

}  // namespace paceline
