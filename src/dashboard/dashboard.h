// The live page of a run, which the chief serves while it trains (docs/dashboard.md).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "dashboard/http_server.h"
#include "dashboard/live_run.h"
#include "net/heartbeat_thread.h"
#include "params/progress_board.h"

namespace paceline {

/// Any thread may call. Its own threads end with it.
class Dashboard {
 public:
  struct Options {
    Address at;
    RunAbout about;
    std::string own_task = "worker:0";
    const Clock* clock = nullptr;    // not null; it outlives this, as the board does
    ProgressBoard* board = nullptr;  // not null: what this task tells, and hears of others
    /// Gets the address of the page for as long as it is served; empty: none. OUT/dashboard.
    std::string address_file;
    Duration every = std::chrono::seconds(1);
  };
  /// Serves from now on. Throws kUsage naming --dashboard when it cannot listen.
  explicit Dashboard(const Options& options);
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  /// "http://127.0.0.1:8080".
  std::string url() const { return "http://" + server_->address(); }
  /// From now on the other tasks are asked, once a second, by this call; empty: no more. Returns
  /// once a call that is under way has ended.
  void ask_with(std::function<void()> ask);

 private:
  HttpResponse answer(const HttpRequest& request) const;
  void tick();
  void ask();
  void renew();
  void take_progress(TimePoint now);
  TimePoint now() const { return options_.clock->now(); }

  const Options options_;
  mutable std::mutex mutex_;  // of what follows
  LiveRun run_;
  std::shared_ptr<const std::string> state_, metrics_;
  std::mutex asking_;
  std::function<void()> ask_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HeartbeatThread> ticks_;
};

}  // namespace paceline
