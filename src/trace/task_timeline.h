// The timeline of one task as its own file holds it (docs/timeline.md), before the launcher merges
// all of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/timeline.h"

namespace paceline {

struct TimelineSpan {
  std::int64_t begin = 0, end = 0;  // nanoseconds of the task's clock
  std::size_t label = 0;
  std::size_t thread = 0;
  std::int64_t step = 0;
  std::int64_t bytes = -1;  // −1: none
  FrameMark frame = {};
};

struct TaskTimeline {
  struct Thread {
    pid_t id = 0;
    std::string name;
  };
  std::string task;  // "worker:0"
  int process = 0;
  std::size_t dropped = 0;  // spans that found no place
  /// `machine` identifies the machine since it was started, and `clock` the clock that the task
  /// reads there: tasks with equal texts read one clock.
  std::string machine, clock;
  std::map<std::string, std::vector<ClockSample>> clock_samples;  // by task
  std::vector<Thread> threads;
  std::vector<TimelineLabel> labels;
  std::vector<TimelineSpan> spans;  // by their begin, the longer first

  const TimelineLabel& label_of(const TimelineSpan& span) const { return labels[span.label]; }
  bool shares_clock(const TaskTimeline& other) const {
    return machine == other.machine && clock == other.clock && !machine.empty();
  }
};

/// Returns the value of an argument; empty when it is missing.
std::string_view argument_of(const TimelineLabel& label, std::string_view name);

/// The arguments of a span as JSON.
std::string arguments_of(const TaskTimeline& task, const TimelineSpan& span);

/// Writes the timeline of `task` ("worker:0"), whole or not at all. Throws kUnavailable naming the
/// path.
void write_timeline(const std::string& path, const Timeline& timeline, const std::string& task);
/// Throws kNotFound, or kDataLoss naming the path when it is not the whole timeline of one task.
TaskTimeline read_task_timeline(const std::string& path);

}  // namespace paceline
