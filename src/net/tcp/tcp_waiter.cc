// A reply then wakes one thread instead of two; each waking takes some 20 µs. Lending a socket and
// taking it back are one call of epoll_ctl each, and nothing has to be cancelled: that is why the
// poller is ours (net/poll). A ps waits in the same call, so it reads itself when its link has one
// thread; several threads go on reading in parallel.
#include "net/tcp/tcp_waiter.h"

#include <algorithm>

#include "net/tcp/tcp_connection.h"

namespace paceline {

class TcpWaiter::Borrowing {
 public:
  explicit Borrowing(TcpWaiter& waiter) : borrowed_(waiter.borrowed_) {}
  ~Borrowing() {
    for (const auto& connection : borrowed_) connection->take_back();
    borrowed_.clear();
  }
  Borrowing(const Borrowing&) = delete;
  Borrowing& operator=(const Borrowing&) = delete;

  void borrow(const TcpConnections& connections) {
    connections.for_each([this](const std::shared_ptr<TcpConnection>& connection) {
      borrowed_.push_back(connection);
      if (!connection->lend()) borrowed_.pop_back();
    });
  }

 private:
  std::vector<std::shared_ptr<TcpConnection>>& borrowed_;
};

/// In the middle of a message it does not sleep at once: the rest is on its way.
bool TcpWaiter::wait(const TcpConnections& connections, const EventFd& wake, Deadline deadline,
                     const std::function<bool()>& come) {
  if (come()) return true;
  Borrowing borrowing(*this);
  borrowing.borrow(connections);
  for (TimePoint awake_until; !come();) {
    if (deadline.passed()) return false;
    const TimePoint now = std::chrono::steady_clock::now();
    const bool sleeps = now >= awake_until || !in_message();
    if (read_until(wake, deadline, sleeps ? deadline.time() : now))
      awake_until = std::chrono::steady_clock::now() + connections.spin();
    if (given_up()) return come();
  }
  return true;
}

bool TcpWaiter::in_message() const {
  return std::ranges::any_of(borrowed_,
                             [](const auto& connection) { return connection->in_message(); });
}

/// Sleeps until something has arrived, and reads it. Returns false when it is woken, when `time` is
/// reached, or when the deadline's descriptor can be read.
bool TcpWaiter::read_until(const EventFd& wake, Deadline deadline, TimePoint time) {
  polled_.assign({{wake.fd(), POLLIN, 0}, {deadline.descriptor(), POLLIN, 0}});
  for (const auto& connection : borrowed_) polled_.push_back({connection->fd(), POLLIN, 0});
  if (poll_until(polled_, Deadline::at(time)) != 0) return false;
  if (polled_.front().revents != 0) wake.clear();
  bool read = false;
  for (std::size_t i = 0; i < borrowed_.size(); ++i)
    if (polled_[i + kFirstConnection].revents != 0) read = borrowed_[i]->help() || read;
  return read;
}

bool TcpWaiter::given_up() const { return polled_[kDescriptor].revents != 0; }

}  // namespace paceline
