// Merging is pure: files go in, the spans of all tasks come out, and functions work on these
// (clock_alignment, frame_trips, timeline_arrows, critical_path).
#include "trace/job_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace paceline {
namespace {

// Workers above ps tasks.
int rank_of_task(const std::string& task) {
  const std::size_t colon = task.find(':');
  const int index = colon == std::string::npos ? 0 : std::atoi(task.c_str() + colon + 1);
  return task.starts_with("ps") ? 100'000 + index : index;
}

std::vector<JobTimeline::Step> steps_of(const std::vector<TaskTimeline>& tasks,
                                        const std::vector<FrameTrip>& trips) {
  const CriticalPaths paths(tasks, trips);
  std::vector<JobTimeline::Step> steps;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (std::size_t k = 0; k < tasks[i].spans.size(); ++k) {
      const TimelineLabel& label = tasks[i].label_of(tasks[i].spans[k]);
      if (label.category != "step" || label.name != "step") continue;
      steps.push_back({tasks[i].task, paths.path_of({i, k})});
    }
  }
  return steps;
}

std::string clock_text(const TaskTimeline& task, const TaskClock& clock,
                       const std::string& reference) {
  if (!clock.is_known) {
    return fmt::format("{}: no round trip leads to {}'s clock; its times are as they are",
                       task.task, reference);
  }
  const double ahead = -double(clock.line.offset.count()) * 1e-9;
  return fmt::format("{}: its clock is {:.6f} s {} that of {}, \u00b1 {:.1f} \u00b5s", task.task,
                     std::abs(ahead), ahead < 0 ? "behind" : "ahead of", reference,
                     double(clock.line.uncertainty.count()) * 1e-3);
}

}  // namespace

JobTimeline merge_timelines(std::vector<TaskTimeline> tasks) {
  JobTimeline job;
  std::ranges::stable_sort(tasks, {}, [](const auto& task) { return rank_of_task(task.task); });
  const std::vector<FrameTrip> trips = match_frames(tasks);
  job.clocks = align_clocks(tasks);
  put_causes_first(tasks, trips, job.clocks);
  change_to_one_clock(tasks, job.clocks);
  job.arrows = arrows_of(tasks, trips);
  job.steps = steps_of(tasks, trips);
  job.tasks = std::move(tasks);
  return job;
}

std::string summary_of(const JobTimeline& job) {
  std::string text;
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    if (job.clocks[i].is_same) continue;
    text += clock_text(job.tasks[i], job.clocks[i], job.tasks.front().task) + "\n";
  }
  if (text.empty() && job.tasks.size() > 1) text = "All tasks read one clock.\n";
  std::map<std::string, std::int64_t> times;
  std::int64_t all = 0;
  for (const JobTimeline::Step& step : job.steps) {
    for (const PathPart& part : step.path) {
      times[part.what] += part.end - part.begin;
      all += part.end - part.begin;
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> largest;
  largest.reserve(times.size());
  for (const auto& [what, time] : times) largest.emplace_back(time, what);
  std::ranges::sort(largest, std::greater());
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(largest.size(), kShown); ++i) {
    text += fmt::format("{}{} {:.0f}%", i == 0 ? "Critical path of the steps: " : ", ",
                        largest[i].second, 100 * double(largest[i].first) / double(all));
  }
  return largest.empty() ? text : text + "\n";
}

std::string merge_timeline_files(const std::vector<std::string>& parts, const std::string& path) {
  std::vector<TaskTimeline> tasks;
  tasks.reserve(parts.size());
  for (const std::string& part : parts) tasks.push_back(read_task_timeline(part));
  const JobTimeline job = merge_timelines(std::move(tasks));
  write_job_timeline(path, job);
  return summary_of(job);
}

}  // namespace paceline
