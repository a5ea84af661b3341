// Waiting for what other threads count up in atomics.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/check.h"
#include "net/link.h"

namespace paceline {

/// The notifier changes an atomic, then calls notify; the waiter's predicate reads it. Both sides
/// must use sequentially consistent operations: either the notifier sees the waiter or the waiter
/// the change. Costs the notifier one load while nobody waits. One waiter at a time.
class Wakeup {
 public:
  void notify() {
    const std::thread::id waiter = waiter_.load();
    if (waiter != std::thread::id() && waiter != std::this_thread::get_id()) event_.raise();
  }
  /// On the link, which may notify on this thread. False when the deadline passed first.
  template <typename Predicate>
  bool wait(Link& link, Deadline deadline, Predicate&& predicate) {
    PACELINE_CHECK(waiter_.load() == std::thread::id());
    waiter_.store(std::this_thread::get_id());
    const bool come = link.wait(event_, deadline, std::ref(predicate));
    waiter_.store({});
    return come;
  }

 private:
  const EventFd event_;
  std::atomic<std::thread::id> waiter_;
};

}  // namespace paceline
