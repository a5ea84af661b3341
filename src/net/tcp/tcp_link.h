// Links between processes and hosts over TCP. docs/wire.md describes preamble, control connection
// and heartbeats.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/accept/rendezvous.h"
#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "net/poll/event_fd.h"
#include "net/poll/poll_until.h"
#include "net/tcp/incoming_shares.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_connections.h"
#include "net/tls/link_streams.h"

namespace paceline {

/// Reads on a waiting thread what the poller's threads would read. Makes one wait at a time. The
/// connections that exist when a wait begins lend their sockets to the waiter until the wait ends.
/// Allocates only if there are more connections than at any earlier wait.
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

  /// The places in polled_. The descriptor of the event that wakes the waiter comes first; then the
  /// deadline's descriptor, and then those of the connections.
  static constexpr std::size_t kDescriptor = 1, kFirstConnection = 2;

  std::vector<std::shared_ptr<TcpConnection>> borrowed_;
  std::vector<pollfd> polled_;
};

class TcpAcceptor;

class TcpLink : public Link, public Rendezvous {
 public:
  explicit TcpLink(const LinkOptions& options);
  ~TcpLink() override;

  std::string kind() const override { return "tcp"; }
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override;
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override;

  std::string publish(const std::string& address, const Offer& offer, Acceptor others) override;
  std::optional<Offer> ask_for_offer(const std::string& address, Deadline deadline) override;
  /// Like ask_for_offer, but asks nothing if the address is on another host, which cannot share
  /// memory.
  std::optional<Offer> ask_own_host_for_offer(const std::string& address, Deadline deadline);
  const std::shared_ptr<Poller>& poller() const override { return connections_->poller(); }

 private:
  std::string listen(const std::string& address, Acceptor acceptor, std::optional<Offer> offer);
  /// Ticks the connections, and divides the incoming bytes evenly among the connections that peers
  /// have made. Only those connections count: a task that accepts connections serves many peers, so
  /// its link is the one that fills.
  void tick();

  StreamSocket open(FileDescriptor fd, const std::string& address, Deadline deadline) const;
  std::optional<Offer> ask(FileDescriptor fd, const std::string& address, Deadline deadline) const;

  const std::shared_ptr<const LinkStreams> streams_;
  const std::function<void(const std::string&)> refused_;
  const std::shared_ptr<TcpConnections> connections_;
  const bool waiter_reads_;
  TcpWaiter waiter_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<TcpAcceptor>> acceptors_;
  IncomingShares shares_;  // only the ticking thread uses it
  TimePoint ticked_ = std::chrono::steady_clock::now();
  std::optional<HeartbeatThread> heartbeats_;
};

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options);

}  // namespace paceline
