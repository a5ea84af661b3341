// Round trips to another task, from which a timeline learns how far that task's clock is ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "net/link.h"
#include "trace/timeline.h"

namespace paceline {

/// Asks one task what its clock shows. Does nothing if `timeline` is null.
class ClockQuestions {
 public:
  /// `task` is the name of the task to ask.
  ClockQuestions(Timeline* timeline, std::string task)
      : timeline_(timeline), task_(std::move(task)) {}

  /// Call it when a connection has been made: asks several times, each time after the previous
  /// answer.
  void begin(Connection& to);
  /// Asks once, unless the timeline has no use for the answer, or an answer is still under way.
  void ask(Connection& to);
  /// Takes an answer (kClock). An answer to no question is ignored.
  void answered(const FrameHeader& header, Connection& from);

 private:
  void send(Connection& to);

  Timeline* const timeline_;
  const std::string task_;
  /// The time of the question under way, in nanoseconds; 0: no answer is due.
  std::atomic<std::int64_t> asked_{0};
  std::atomic<int> more_{0};  // how many more questions to ask, each after an answer
};

/// Answers a question (kAskClock). Throws kDataLoss when the question has a payload.
void tell_clock(const FrameHeader& question, Connection& to);

}  // namespace paceline
