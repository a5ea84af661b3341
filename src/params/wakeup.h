// Lets one thread wait for atomic numbers that other threads change.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/check.h"
#include "net/link.h"

namespace paceline {

/// The notifier changes an atomic, then calls notify; the waiter's predicate reads the atomic. Both
/// sides must use sequentially consistent operations: then either the notifier sees the waiter, or
/// the waiter sees the change. While nobody waits, notify costs one load. One waiter at a time.
class Wakeup {
 public:
  void notify() {
    const std::thread::id waiter = waiter_.load();
    if (waiter != std::thread::id() && waiter != std::this_thread::get_id()) event_.raise();
  }
  /// Waits on the link, on this thread, until the predicate holds; the link may notify on this
  /// thread, too. Returns false if the deadline passes first.
  template <typename Predicate>
  bool wait(Link& link, Deadline deadline, Predicate&& predicate) {
    const Waiting waiting(waiter_);
    return link.wait(event_, deadline, std::ref(predicate));
  }

 private:
  using Waiter = std::atomic<std::thread::id>;
  class Waiting {
   public:
    explicit Waiting(Waiter& waiter) : waiter_(waiter) {
      std::thread::id nobody;
      PACELINE_CHECK(waiter_.compare_exchange_strong(nobody, std::this_thread::get_id()));
    }
    ~Waiting() { waiter_.store({}); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Waiter& waiter_;
  };

  const EventFd event_;
  Waiter waiter_;
};

}  // namespace paceline
