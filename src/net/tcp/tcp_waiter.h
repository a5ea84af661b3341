// Reads on the thread of a waiter what the poller's threads would read.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "net/poll/event_fd.h"
#include "net/poll/poll_until.h"
#include "net/tcp/tcp_connections.h"

namespace paceline {

/// Makes one wait at a time. Connections lend it the reading of their sockets for as long as a wait
/// lasts; those that are made meanwhile do not. It allocates only when it meets more connections
/// than ever before.
class TcpWaiter {
 public:
  /// Does what Link::wait does.
  bool wait(const TcpConnections& connections, const EventFd& wake, Deadline deadline,
            const std::function<bool()>& come);

 private:
  class Borrowing;
  bool in_message() const;
  bool read_until(const EventFd& wake, Deadline deadline, TimePoint time);
  bool given_up() const;

  /// The event that wakes the waiter is polled first, then the deadline's descriptor.
  static constexpr std::size_t kDescriptor = 1, kFirstConnection = 2;

  std::vector<std::shared_ptr<TcpConnection>> borrowed_;
  std::vector<pollfd> polled_;
};

}  // namespace paceline
