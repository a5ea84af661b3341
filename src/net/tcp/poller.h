// Threads that wait for descriptors and timers. Asio stays behind this header.
#pragma once

#include <functional>
#include <memory>

#include "base/deadline.h"
#include "net/file_descriptor.h"

namespace paceline {

/// Called on a thread of the poller, once per wait.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
};

/// Thread-safe, but for stop.
class Poller {
 public:
  explicit Poller(int threads);
  ~Poller();
  /// On a thread of the poller, at `time` or later; never after stop.
  void call_at(TimePoint time, std::function<void()> call);
  /// Joins the threads. Not on one of them.
  void stop();
  /// After stop, and when all watches are gone: lets go of what they held.
  void drop_pending();

 private:
  friend class Watch;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Owns a descriptor and waits for it; at most one wait of a kind at a time, and no two calls at
/// once. Destroying it cancels the waits. A wait allocates nothing. A descriptor wakes a thread of
/// the poller whenever something comes, waited for or not, unless it is paused.
class Watch {
 public:
  Watch(std::shared_ptr<Poller> poller, FileDescriptor fd);
  ~Watch();
  int fd() const;
  void wait_readable(std::shared_ptr<Watcher> watcher);
  void wait_writable(std::shared_ptr<Watcher> watcher);
  FileDescriptor release();
  /// Cancels the waits; until the next one the poller does not hear of the descriptor.
  void pause();

 private:
  struct Impl;
  void resume();

  std::shared_ptr<Poller> poller_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline
