// The signals that ask a process to end.
#pragma once

#include <signal.h>

#include "base/clock.h"

namespace paceline {

/// The time within which a second signal is the same request: timeout(1) and other programs signal
/// a process and then its whole group.
constexpr Duration kSameRequest = std::chrono::milliseconds(200);

/// While it lives, SIGINT, SIGTERM and SIGHUP do nothing but make a descriptor readable; SIGHUP
/// only where it was not ignored (nohup). When whoever read this process's output is gone, a
/// SIGTERM takes the place of SIGPIPE, and further output is dropped. One per process, made before
/// any other thread is started, so that every thread inherits the mask.
class EndingSignals {
 public:
  /// Throws kInternal.
  EndingSignals();
  ~EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  /// A signalfd that does not block.
  int fd() const { return fd_; }
  /// Takes the signals that have arrived.
  void drain() const;

 private:
  sigset_t set_;
  int fd_ = -1;
  struct sigaction broken_pipe_before_;
};

}  // namespace paceline
