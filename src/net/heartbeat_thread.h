// A thread that sends and hears heartbeats, and does nothing else: one that handles messages may be
// busy for longer than a peer waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/deadline.h"

namespace paceline {

/// Calls `tick` every `period` until it is destroyed. A tick is never made up for: after a pause of
/// the whole process the next one is a period later.
class HeartbeatThread {
 public:
  HeartbeatThread(Duration period, std::function<void()> tick);
  /// Joins. Not inside tick.
  ~HeartbeatThread();

 private:
  void run();

  const Duration period_;
  const std::function<void()> tick_;
  std::mutex mutex_;
  std::condition_variable stops_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace paceline
