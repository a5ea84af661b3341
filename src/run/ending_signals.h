// The signals that ask a process to end.
#pragma once

#include <signal.h>

#include "base/clock.h"

namespace paceline {

/// A second signal within this time is the same request: timeout(1) and other programs signal a
/// process and then its whole group.
constexpr Duration kSameRequest = std::chrono::milliseconds(200);

/// While an object lives, SIGINT, SIGTERM and SIGHUP only make a descriptor readable; SIGHUP stays
/// ignored where it was ignored (nohup). When the reader of this process's output is gone, SIGTERM
/// is raised instead of SIGPIPE, and further output is dropped. Make one object per process, before
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
  /// Discards the signals that have arrived.
  void drain() const;

 private:
  sigset_t set_;
  int fd_ = -1;
  struct sigaction broken_pipe_before_;
};

}  // namespace paceline
