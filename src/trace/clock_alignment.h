// One clock for the timelines of all tasks.
#pragma once

#include <span>
#include <vector>

#include "trace/frame_trips.h"
#include "trace/task_timeline.h"

namespace paceline {

/// How a task's clock was found to be.
struct TaskClock {
  /// From the task's clock to that of the first task.
  ClockLine line;
  /// The two tasks read one clock.
  bool is_same = false;
  /// False: no round trip leads to the first task, and the clock is taken as it is.
  bool is_known = false;
};

/// By task. Each goes over the round trips that leave the least uncertainty.
std::vector<TaskClock> align_clocks(std::span<const TaskTimeline> tasks);

/// Moves clocks within their uncertainty until every frame arrives after it was sent.
void put_causes_first(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips,
                      std::vector<TaskClock>& clocks);

/// Changes all times to those of the first task's clock.
void change_to_one_clock(std::vector<TaskTimeline>& tasks, std::span<const TaskClock> clocks);

}  // namespace paceline
