// SIGINT, SIGTERM and SIGHUP, in a form that a step or a wait can look at.
#pragma once

#include <atomic>
#include <thread>

#include "run/ending_signals.h"

namespace paceline {

constexpr int kInterruptedStatus = 130;  // how a process ends that a signal ended

/// While it lives, the signals of EndingSignals do not end the process: the first asks it to
/// finish, the second (ending_signals.h) ends it at once with status 130, as does a first that was
/// not heeded within 10 s, unless it is said that it takes time. One per process, made before any
/// other thread is started.
class Interrupt {
 public:
  /// `nobody_left` is a descriptor that becomes readable once no task is left that this one could
  /// join; below zero: there is none.
  explicit Interrupt(int nobody_left = -1);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True when a signal has arrived. A worker asks once per step, and then throws kCancelled.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  /// True when nobody is left whom this task could join. A task asks while it waits for others.
  bool left_alone() const;
  /// Says that ending is under way and may take long: only a second signal then ends the process.
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
