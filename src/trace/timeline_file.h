// Timelines as Chrome trace JSON (docs/timeline.md), which Perfetto opens.
#pragma once

#include <span>
#include <string>

#include "trace/timeline.h"

namespace paceline {

/// Writes the timeline of `task` ("worker:0"), whole or not at all. Throws kUnavailable naming the
/// path.
void write_timeline(const std::string& path, const Timeline& timeline, const std::string& task);
/// One file of those of several tasks; what is missing, or no timeline of ours, is left out. Throws
/// kUnavailable naming `path`.
void merge_timelines(std::span<const std::string> paths, const std::string& path);

}  // namespace paceline
