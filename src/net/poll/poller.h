// Threads that wait for descriptors (epoll) and timers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "net/poll/event_fd.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Called on a thread of the poller, at most once for each wait. Two threads may call on_readable
/// and on_writable at the same time.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
};

/// Every method except stop is thread-safe.
class Poller {
 public:
  /// Throws kUnavailable if no descriptor is left.
  explicit Poller(int threads);
  ~Poller();
  /// Makes the call on a thread of the poller, at `time` or later, but never after stop.
  void call_at(TimePoint time, std::function<void()> call);
  /// Joins the threads, so do not call it on a thread of the poller.
  void stop();
  /// Call after stop: drops everything that waits, and the calls that were not made.
  void drop_pending();

 private:
  friend class Watch;
  /// A descriptor and the watchers that wait for it.
  struct Waits {
    int fd = -1;
    std::shared_ptr<Watcher> reader, writer;
  };

  // Watches call these functions. The number of a watch is never used again, because one of its
  // events may arrive late.
  std::uint64_t add(int fd);
  void remove(std::uint64_t watch);
  void wait(std::uint64_t watch, std::shared_ptr<Watcher> Waits::*kind,
            std::shared_ptr<Watcher> watcher);
  void cancel_readable(std::uint64_t watch);
  void arm(std::uint64_t watch, const Waits& waits) const;

  void run();
  void call_waiting(std::uint64_t watch, std::uint32_t events);
  void call_due();
  std::function<void()> next_due();
  void set_timer(TimePoint time) const;

  const FileDescriptor epoll_, timer_;
  const EventFd stopping_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::uint64_t last_watch_;
  std::unordered_map<std::uint64_t, Waits> watches_;
  std::multimap<TimePoint, std::function<void()>> calls_;
  std::vector<std::thread> threads_;
};

/// Owns a descriptor and waits for it, with at most one wait of each kind at a time. Its destructor
/// cancels the waits. A wait allocates nothing. While there is no wait, no thread wakes for the
/// descriptor, except once when its connection ends.
class Watch {
 public:
  /// Makes the descriptor non-blocking. Throws kUnavailable if the system can watch no more.
  Watch(std::shared_ptr<Poller> poller, FileDescriptor fd);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const { return fd_.get(); }
  void wait_readable(std::shared_ptr<Watcher> watcher);
  void wait_writable(std::shared_ptr<Watcher> watcher);
  /// Cancels the wait for reading. The watcher may still be called for a wait that has just ended.
  void cancel_readable();
  /// Cancels the waits, and returns the descriptor.
  FileDescriptor release();

 private:
  const std::shared_ptr<Poller> poller_;
  FileDescriptor fd_;
  const std::uint64_t number_;
};

}  // namespace paceline
