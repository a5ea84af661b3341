// One timeline of all tasks of a job (docs/timeline.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trace/clock_alignment.h"
#include "trace/critical_path.h"
#include "trace/timeline_arrows.h"

namespace paceline {

struct JobTimeline {
  struct Step {
    std::string task;
    std::vector<PathPart> path;
  };
  std::vector<TaskTimeline> tasks;  // workers first; all times are of the first one's clock
  std::vector<TaskClock> clocks;    // by task
  std::vector<TimelineArrow> arrows;
  std::vector<Step> steps;  // of workers, by task
};

JobTimeline merge_timelines(std::vector<TaskTimeline> tasks);

/// Larger files are made smaller, until a viewer opens them with ease.
constexpr std::size_t kMostTimelineBytes = 48'000'000;
/// Writes one file for Perfetto, whole or not at all. When it would have more than `most_bytes`,
/// spans lose their arguments first, then the shortest spans are left out, at last the arrows.
/// Throws kUnavailable naming the path.
void write_job_timeline(const std::string& path, const JobTimeline& job,
                        std::size_t most_bytes = kMostTimelineBytes);

/// How the clocks of the tasks were found to be, and what the steps' critical paths consist of.
std::string summary_of(const JobTimeline& job);

/// Reads the files, merges them, and writes one. Returns the lines to print. Throws as
/// read_task_timeline and write_job_timeline do.
std::string merge_timeline_files(const std::vector<std::string>& parts, const std::string& path);

}  // namespace paceline
