// SIGINT and SIGTERM, as something that a step or a wait can look at.
#pragma once

#include <atomic>
#include <thread>

namespace paceline {

constexpr int kInterruptedStatus = 130;  // how a process ends that a signal ended

/// While it lives, SIGINT and SIGTERM do not end the process: the first asks it to finish, the
/// second ends it at once with status 130, as does a first that was not heeded within 10 s. One per
/// process, made before any other thread is started.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// A signal came. A worker asks once per step, and then throws kCancelled.
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  /// Readable from the first signal on, for poll; not to be read from.
  int fd() const { return asked_; }

 private:
  void watch();

  std::atomic<bool> interrupted_{false};
  int signals_, asked_, ended_;
  std::thread thread_;
};

}  // namespace paceline
