// Matches the sending and the arrival of frames in the timelines of two tasks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "trace/task_timeline.h"

namespace paceline {

/// A span of a job's tasks.
struct SpanPlace {
  std::size_t task = 0, span = 0;
  bool operator==(const SpanPlace&) const = default;
};

/// A frame: the span that handed it to the link, and the span that handled it.
struct FrameTrip {
  SpanPlace sent, received;
};

/// Returns the message of a frame's span, "chunk" of "send chunk"; empty when the label is no
/// frame's, or has another verb.
std::string_view message_of(const TimelineLabel& label, std::string_view verb);

/// Returns all frames with a sending and an arrival, in the order of their arrival in each task.
std::vector<FrameTrip> match_frames(std::span<const TaskTimeline> tasks);

}  // namespace paceline
