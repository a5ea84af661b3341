// The critical path of a step: what each moment of it waited for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/frame_trips.h"

namespace paceline {

/// "worker:0 kernels", "link worker:0 to ps:0", "ps:0 applies rules".
struct PathPart {
  std::string what;
  std::int64_t begin = 0, end = 0;
  bool operator==(const PathPart&) const = default;
};

/// Goes back from the ends of steps, through the spans of the tasks. Where a task waited, the path
/// goes on at the task that has sent what it waited for; where a frame had to wait for the thread
/// that handles it, it stays.
class CriticalPaths {
 public:
  /// The times of all tasks are of one clock. Both outlive this.
  CriticalPaths(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips);

  /// The parts of the step that this span ("step" of a worker) covers, in their order and without
  /// a gap. Parts that follow one another and do the same are one.
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
    std::vector<std::size_t> trips;    // by span that handles a frame: its trip
    std::vector<std::size_t> handled;  // spans that have a trip, by their begin
    std::vector<std::size_t> worked;   // these, and those of other work, by their end
  };

  void index(std::size_t task);

  const std::span<const TaskTimeline> tasks_;
  const std::span<const FrameTrip> trips_;
  std::vector<Task> index_;
};

}  // namespace paceline
