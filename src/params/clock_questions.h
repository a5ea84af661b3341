// Round trips to another task, which tell a timeline how far its clock is ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "net/link.h"
#include "trace/timeline.h"

namespace paceline {

/// Asks one task. Without a timeline, which may be null, it does nothing.
class ClockQuestions {
 public:
  /// `task` is the name of the task that is asked.
  ClockQuestions(Timeline* timeline, std::string task)
      : timeline_(timeline), task_(std::move(task)) {}

  /// A connection has been made: asks several times, one question after the other's answer.
  void begin(Connection& to);
  /// Asks once, unless the timeline has no use for it, or an answer is still to come.
  void ask(Connection& to);
  /// An answer arrived (kClock). One that was not asked for is not counted.
  void answered(const FrameHeader& header, Connection& from);

 private:
  void send(Connection& to);

  Timeline* const timeline_;
  const std::string task_;
  std::atomic<std::int64_t> asked_{0};  // when, in nanoseconds; 0: no answer is to come
  std::atomic<int> more_{0};            // questions that follow the next answers
};

/// Answers a question (kAskClock). Throws kDataLoss when it has a payload.
void tell_clock(const FrameHeader& question, Connection& to);

}  // namespace paceline
