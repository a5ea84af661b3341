// Reading on the thread of a waiter what the poller's threads would read.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/poll/event_fd.h"
#include "net/poll/poll_until.h"
#include "net/tcp/tcp_connections.h"

namespace paceline {

/// One wait at a time. Connections lend it the reading of their sockets for as long as it lasts;
/// those that are made meanwhile do not. Once it has seen as many connections it allocates nothing.
class TcpWaiter {
 public:
  /// As Link::wait.
  bool wait(const TcpConnections& connections, const EventFd& wake, Deadline deadline,
            const std::function<bool()>& come);

 private:
  class Borrowing;
  bool in_message() const;
  bool read_until(const EventFd& wake, Deadline deadline);

  std::vector<std::shared_ptr<TcpConnection>> borrowed_;
  std::vector<pollfd> polled_;  // who wakes it, then by connection
};

}  // namespace paceline
