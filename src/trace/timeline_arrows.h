// The arrows of a job's timeline: from a cause in one task to its effect in another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/frame_trips.h"

namespace paceline {

struct TimelineArrow {
  struct End {
    SpanPlace place;
    std::int64_t at = 0;  // within the span
  };
  std::string name;
  std::vector<End> ends;  // two or more, in the order of their times
};

/// The times of all tasks are of one clock. The arrows:
/// - a worker's push of a piece → the ps's rule → the frame that brings the new values, or says
///   that they are there → the `need` that first uses them;
/// - in an all-reduce, from each part of a sum to its receiver, from "my sums are whole" to the
///   coordinator, and from there to the members that commit.
std::vector<TimelineArrow> arrows_of(std::span<const TaskTimeline> tasks,
                                     std::span<const FrameTrip> trips);

}  // namespace paceline
