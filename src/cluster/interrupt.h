// SIGINT, SIGTERM and SIGHUP, as something that a step or a wait can look at.
#pragma once

#include <atomic>
#include <thread>

#include "cluster/ending_signals.h"

namespace paceline {

constexpr int kInterruptedStatus = 130;  // how a process ends that a signal ended

/// While it lives, the signals of EndingSignals do not end the process: the first asks it to
/// finish, the second (ending_signals.h) ends it at once with status 130, as does a first that was
/// not heeded within 10 s, unless it is said that it takes time. One per process, made before any
/// other thread is started.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// A signal came. A worker asks once per step, and then throws kCancelled.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  /// What was asked for is under way, and takes as long as it takes: only a second signal ends it.
  void take_time() const;
  /// Readable from the first signal on, for poll; not to be read from.
  int fd() const { return asked_; }

 private:
  void watch();

  std::atomic<bool> interrupted_{false};
  EndingSignals signals_;
  int asked_, takes_time_, ended_;
  std::thread thread_;
};

}  // namespace paceline
