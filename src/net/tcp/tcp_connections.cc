#include "net/tcp/tcp_connections.h"

#include "net/tcp/tcp_connection.h"

namespace paceline {

TcpConnections::TcpConnections(int threads, Duration dead_after)
    : poller_(std::make_shared<Poller>(threads)), dead_after_(dead_after) {}

bool TcpConnections::add(std::shared_ptr<TcpConnection> connection) {
  std::lock_guard lock(mutex_);
  if (!shut_) connections_.push_back(std::move(connection));
  return !shut_;
}

void TcpConnections::forget(const TcpConnection* connection) {
  std::lock_guard lock(mutex_);
  std::erase_if(connections_, [&](const auto& one) { return one.get() == connection; });
}

std::shared_ptr<TcpConnection> TcpConnections::at(std::size_t i) const {
  std::lock_guard lock(mutex_);
  return i < connections_.size() ? connections_[i] : nullptr;
}

std::vector<std::shared_ptr<TcpConnection>> TcpConnections::all() const {
  std::lock_guard lock(mutex_);
  return connections_;
}

std::vector<std::shared_ptr<TcpConnection>> TcpConnections::shut() {
  std::lock_guard lock(mutex_);
  shut_ = true;
  return connections_;
}

}  // namespace paceline
