// The live page of a run, which the chief serves while it trains (docs/dashboard.md).
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "dashboard/http_server.h"
#include "dashboard/live_run.h"

namespace paceline {

/// Serves the page. Any thread may call; its own threads end with it.
class Dashboard {
 public:
  struct Options {
    Address at;
    std::string token = {};  // a request must have it; empty: none is needed
    /// PEM files with the certificate that the page shows, and with its private key. If they are
    /// empty, the page is not encrypted.
    std::string certificate = {}, key = {};
    /// The file that holds the page's address while it is served (OUT/dashboard); if it is empty,
    /// there is no such file.
    std::string address_file;
  };
  /// Begins to serve, at first the present state of `run`. Throws kUsage naming --dashboard if it
  /// cannot listen, and as HttpsContext does for --dashboard-cert and --dashboard-key.
  Dashboard(const Options& options, LiveRun run, TimePoint now);
  ~Dashboard();
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;

  /// "http://127.0.0.1:8080".
  std::string url() const { return (encrypts() ? "https://" : "http://") + server_->address(); }
  bool encrypts() const { return !options_.certificate.empty(); }
  /// Adds a point to the history of `run`, and from now on serves its present state.
  void renew(LiveRun& run, TimePoint now);

 private:
  HttpResponse answer(const HttpRequest& request) const;

  const Options options_;
  mutable std::mutex mutex_;  // guards state_ and metrics_
  std::shared_ptr<const std::string> state_, metrics_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace paceline
