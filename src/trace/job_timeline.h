// One timeline of all tasks of a job (docs/timeline.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/frame_trips.h"
#include "trace/task_timeline.h"

namespace paceline {

/// The relation of a task's clock to the first task's clock.
struct TaskClock {
  /// The line from the task's clock to the first task's clock.
  ClockLine line;
  /// The two tasks read one clock.
  bool is_same = false;
  /// False if no chain of round trips leads to the first task; the clock is then taken as it is.
  bool is_known = false;
};

/// Returns the clocks by task. Each clock is compared by the chain of round trips that leaves the
/// least uncertainty.
std::vector<TaskClock> align_clocks(std::span<const TaskTimeline> tasks);

/// Moves clocks within their uncertainty, so that no frame arrives before it was sent.
void put_causes_first(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips,
                      std::vector<TaskClock>& clocks);

/// Changes all times to those of the first task's clock.
void change_to_one_clock(std::vector<TaskTimeline>& tasks, std::span<const TaskClock> clocks);

/// A part of a path: "worker:0 kernels", "link worker:0 to ps:0", "ps:0 applies rules".
struct PathPart {
  std::string what;
  std::int64_t begin = 0, end = 0;
  bool operator==(const PathPart&) const = default;
};

/// The critical path of a step: what each moment of the step waited for. It is followed backwards
/// from the step's end through the spans of tasks. Where a task waited, the path continues at the
/// task that sent what was waited for. Where a frame had to wait for the thread that handles it,
/// the path stays in that thread's task.
class CriticalPaths {
 public:
  /// The times of all tasks must be of one clock. Both arguments must outlive this object.
  CriticalPaths(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips);

  /// Returns the parts of the step that this span (a worker's "step") covers, in order and without
  /// gaps. Neighbouring parts that do the same are joined.
  std::vector<PathPart> path_of(SpanPlace step) const;

 private:
  class Walk;
  static constexpr std::size_t kNone = std::size_t(-1);

  struct Thread {
    std::vector<std::size_t> spans;  // by their begin, the outer first
  };
  struct Task {
    std::vector<Thread> threads;
    std::vector<std::size_t> parents;  // by span
    std::vector<std::size_t> trips;    // for each span that handles a frame: the index of its trip
    std::vector<std::size_t> handled;  // the spans that have a trip, ordered by their begin
    std::vector<std::size_t> worked;   // these spans and those of other work, ordered by their end
  };

  void index(std::size_t task);

  const std::span<const TaskTimeline> tasks_;
  const std::span<const FrameTrip> trips_;
  std::vector<Task> index_;
};

/// An arrow of a job's timeline, from a cause in one task to its effect in another.
struct TimelineArrow {
  struct End {
    SpanPlace place;
    std::int64_t at = 0;  // within the span
  };
  std::string name;
  std::vector<End> ends;  // two or more ends, ordered by time
};

/// Returns the arrows; the times of all tasks must be of one clock. An arrow leads
/// - from a worker's push of a piece → the ps's rule → the frame that brings the new values, or
///   says that they can be fetched → the `need` that first uses them;
/// - in an all-reduce, from each part of a sum to its receiver, from "my sums are whole" to the
///   coordinator, and from there to the members that commit.
std::vector<TimelineArrow> arrows_of(std::span<const TaskTimeline> tasks,
                                     std::span<const FrameTrip> trips);

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

/// Files larger than this are made smaller, so that a viewer can open them.
constexpr std::size_t kMostTimelineBytes = 48'000'000;
/// Writes one file for Perfetto, whole or not at all. If it would have more than `most_bytes`,
/// spans first lose their arguments, then the shortest spans are left out, and at last the arrows.
/// Throws kUnavailable naming the path.
void write_job_timeline(const std::string& path, const JobTimeline& job,
                        std::size_t most_bytes = kMostTimelineBytes);

/// Returns a summary: the offsets of the tasks' clocks, and the parts of the steps' critical paths.
std::string summary_of(const JobTimeline& job);

/// Reads the files, merges them, and writes one file. Returns the lines to print. Throws as
/// read_task_timeline and write_job_timeline do.
std::string merge_timeline_files(const std::vector<std::string>& parts, const std::string& path);

}  // namespace paceline
