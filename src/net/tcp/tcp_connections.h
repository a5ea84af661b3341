// What the connections of one tcp link share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "net/tcp/poller.h"

namespace paceline {

class TcpConnection;

/// Thread-safe. Owns the connections until they have ended.
class TcpConnections {
 public:
  TcpConnections(int threads, Duration dead_after);

  const std::shared_ptr<Poller>& poller() const { return poller_; }
  Duration dead_after() const { return dead_after_; }

  /// False when the link is being destroyed.
  bool add(std::shared_ptr<TcpConnection> connection);
  void forget(const TcpConnection* connection);
  std::shared_ptr<TcpConnection> at(std::size_t i) const;
  std::vector<std::shared_ptr<TcpConnection>> all() const;
  std::vector<std::shared_ptr<TcpConnection>> shut();

  void set_spinning(bool spinning) { spinning_ += spinning ? 1 : -1; }
  /// Somebody reads all connections again and again: the poller's threads need not wake.
  bool spinning() const { return spinning_ > 0; }

 private:
  const std::shared_ptr<Poller> poller_;
  const Duration dead_after_;
  std::atomic<int> spinning_{0};
  mutable std::mutex mutex_;
  bool shut_ = false;
  std::vector<std::shared_ptr<TcpConnection>> connections_;
};

}  // namespace paceline
