// A run as its chief sees it: what all tasks report about themselves, at intervals.
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

/// Watches a run. Any thread may call; its own thread ends with it.
class RunWatch {
 public:
  struct Options {
    RunAbout about;
    const Clock* clock = nullptr;  // not null; it outlives this
    /// Returns what the tasks have reported since the last call. The other tasks were asked in
    /// between.
    std::function<std::vector<TaskWords>()> hear;
    Duration every = std::chrono::seconds(1);
  };
  /// The watch's own thread calls `look` each time that it has heard the tasks.
  using Look = std::function<void(LiveRun& run, TimePoint now)>;
  RunWatch(const Options& options, Look look);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// From now on, calls `ask` at each interval to ask the other tasks; an empty `ask` ends this.
  /// Returns once a call under way has ended.
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
