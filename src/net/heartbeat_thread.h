// A thread that only sends heartbeats and checks for those of the peers. A thread that also handled
// messages could be busy for longer than a peer waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/deadline.h"

namespace paceline {

/// Lets a test decide when ticks happen, instead of real time. Thread-safe.
class ManualTicks {
 public:
  /// Calls every function that was added, in turn.
  void tick();
  void add(const void* owner, std::function<void()> tick);
  void remove(const void* owner);

 private:
  std::mutex mutex_;
  std::map<const void*, std::function<void()>> ticks_;
};

/// Calls `tick` every `period` until this object is destroyed. Missed ticks are not made up for:
/// after a pause of the whole process, the next tick follows a period later.
class HeartbeatThread {
 public:
  /// If `manual` is not null, it decides when to tick, and there is no thread.
  HeartbeatThread(Duration period, std::function<void()> tick,
                  std::shared_ptr<ManualTicks> manual = nullptr);
  /// Joins the thread, so do not call it inside `tick`.
  ~HeartbeatThread();

 private:
  void run();

  const Duration period_;
  const std::function<void()> tick_;
  const std::shared_ptr<ManualTicks> manual_;
  std::mutex mutex_;
  std::condition_variable stops_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace paceline
