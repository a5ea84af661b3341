// SIGINT, SIGTERM and SIGHUP, in a form that a step or a wait can look at.
#pragma once

#include <atomic>
#include <thread>

#include "run/ending_signals.h"

namespace paceline {

// The exit status of a process that a signal has ended.
constexpr int kInterruptedStatus = 130;

/// While an object lives, the signals of EndingSignals do not end the process at once. The first
/// asks the process to finish. A second one (ending_signals.h) ends it immediately with status 130,
/// and so does the first if the process has not finished within 10 s, unless take_time() was
/// called. Make one object per process, before any other thread is started.
class Interrupt {
 public:
  /// `nobody_left` is a descriptor that becomes readable once no task is left that this task could
  /// join; a negative number means that there is none.
  explicit Interrupt(int nobody_left = -1);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True once a signal has arrived. A worker asks in each step, and ends with kCancelled if one
  /// has.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  /// True if no task is left that this task could join. A task asks while it waits for others.
  bool left_alone() const;
  /// Tells that the end is under way and may take long: from now on only a second signal ends the
  /// process.
  void take_time() const;
  /// Returns a descriptor for poll that is readable from the first signal on. Callers must not read
  /// from it.
  int fd() const { return asked_; }

 private:
  void watch();

  std::atomic<bool> interrupted_{false};
  EndingSignals signals_;
  const int nobody_left_;
  int asked_, takes_time_, ended_;
  std::thread thread_;
};

}  // namespace paceline
