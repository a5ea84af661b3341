#include "net/tcp/tcp_waiter.h"

#include "net/tcp/tcp_connection.h"

namespace paceline {

class TcpWaiter::Borrowing {
 public:
  Borrowing(TcpWaiter& waiter, const TcpConnections& connections) : borrowed_(waiter.borrowed_) {
    connections.for_each([this](const std::shared_ptr<TcpConnection>& connection) {
      if (connection->lend()) borrowed_.push_back(connection);
    });
  }
  ~Borrowing() {
    for (const auto& connection : borrowed_) connection->take_back();
    borrowed_.clear();
  }
  Borrowing(const Borrowing&) = delete;
  Borrowing& operator=(const Borrowing&) = delete;

 private:
  std::vector<std::shared_ptr<TcpConnection>>& borrowed_;
};

TcpWaiter::TcpWaiter() = default;
TcpWaiter::~TcpWaiter() = default;

bool TcpWaiter::wait(const TcpConnections& connections, const EventFd& wake, Deadline deadline,
                     const std::function<bool()>& come) {
  if (come()) return true;
  const Borrowing borrowing(*this, connections);
  while (sleep(wake, deadline)) {
    if (come()) return true;
  }
  return come();
}

/// Until something has come and was read, or it is woken. False at the deadline.
bool TcpWaiter::sleep(const EventFd& wake, Deadline deadline) {
  polled_.assign(1, {wake.fd(), POLLIN, 0});
  for (const auto& connection : borrowed_) polled_.push_back({connection->fd(), POLLIN, 0});
  if (poll_until(polled_, deadline) != 0) return false;
  if (polled_.front().revents != 0) wake.clear();
  for (std::size_t i = 0; i < borrowed_.size(); ++i)
    if (polled_[i + 1].revents != 0) borrowed_[i]->help();
  return true;
}

}  // namespace paceline
