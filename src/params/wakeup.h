// Waiting for what other threads count up in atomics.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/deadline.h"

namespace paceline {

/// The notifier changes an atomic, then calls notify; the waiter's predicate reads it. Both sides
/// must use sequentially consistent operations: either the notifier sees the waiter or the waiter
/// the change. Costs the notifier one load while nobody waits.
class Wakeup {
 public:
  void notify() {
    if (waiters_.load() == 0) return;
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }
  /// False when the deadline passed first.
  template <typename Predicate>
  bool wait(Deadline deadline, Predicate&& predicate) {
    std::unique_lock lock(mutex_);
    ++waiters_;
    const bool come = changed_.wait_until(lock, deadline.time(), predicate);
    --waiters_;
    return come;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> waiters_{0};
};

}  // namespace paceline
