// Matches the sending and the arrival of frames in the timelines of two tasks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "trace/task_timeline.h"

namespace paceline {

/// The index of a task in a job's list of tasks, and of one of the task's spans.
struct SpanPlace {
  std::size_t task = 0, span = 0;
  bool operator==(const SpanPlace&) const = default;
};

/// A frame's way: the span that handed it to the link, and the span that handled it on arrival.
struct FrameTrip {
  SpanPlace sent, received;
};

/// Returns the message in the label of a frame's span, "chunk" for "send chunk"; empty if the label
/// is not that of a frame, or has another verb.
std::string_view message_of(const TimelineLabel& label, std::string_view verb);

/// Returns all frames of which both the sending and the arrival were recorded, ordered by their
/// arrival in each task.
std::vector<FrameTrip> match_frames(std::span<const TaskTimeline> tasks);

}  // namespace paceline
