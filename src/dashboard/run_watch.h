// A run as its chief sees it: what all tasks say of themselves, once a second.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "dashboard/live_run.h"
#include "net/heartbeat_thread.h"
#include "paceline/observer.h"

namespace paceline {

/// Any thread may call. Its own thread ends with it.
class RunWatch {
 public:
  struct Options {
    RunAbout about;
    const Clock* clock = nullptr;  // not null; it outlives this
    /// Returns what tasks have said since the last call, and this one the last time.
    std::function<std::vector<TaskWords>()> hear;
    Duration every = std::chrono::seconds(1);
  };
  /// `look` is called, in the watch's own thread, each time that the tasks were heard.
  using Look = std::function<void(LiveRun& run, TimePoint now)>;
  RunWatch(const Options& options, Look look);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// Asks the other tasks once a second by this call from now on; empty: no more. Returns once a
  /// call under way has ended.
  void ask_with(std::function<void()> ask);

 private:
  void tick();
  void ask();
  void hear(TimePoint now);

  const Options options_;
  const Look look_;
  LiveRun run_;  // of the watch's thread
  std::mutex asking_;
  std::function<void()> ask_;
  std::unique_ptr<HeartbeatThread> ticks_;
};

}  // namespace paceline
