// The far end of a channel as a process of its own.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/pinned.h"

namespace paceline::bench {

/// A copy of this process, forked when this object is made. The copy runs a function, and ends with
/// this object or with its parent. It has only the calling thread, so the function cannot use other
/// threads that this process has already started.
class PeerProcess {
 public:
  /// The process avoids the core of `near`, to which the parent is pinned; null: it runs anywhere.
  explicit PeerProcess(const std::function<void()>& serve, const Pinned* near = nullptr);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Stops the process where it is, so that it takes no core while something else is measured.
  void pause();
  void resume();
  /// Throws kUnavailable if the process has ended.
  void check() const;

 private:
  pid_t pid_;
  bool paused_ = false;
};

}  // namespace paceline::bench
