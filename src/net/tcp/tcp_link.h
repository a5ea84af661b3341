// Links between processes and hosts over TCP. Preamble, control connection and heartbeats are
// described in docs/wire.md.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/accept/rendezvous.h"
#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "net/tcp/incoming_shares.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_connections.h"
#include "net/tcp/tcp_waiter.h"
#include "net/tls/link_streams.h"

namespace paceline {

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
  /// The same, without a word to another host, which shares no memory.
  std::optional<Offer> ask_own_host_for_offer(const std::string& address, Deadline deadline);
  const std::shared_ptr<Poller>& poller() const override { return connections_->poller(); }

 private:
  std::string listen(const std::string& address, Acceptor acceptor, std::optional<Offer> offer);
  /// Ticks the connections, and divides what arrives evenly among those that peers have made:
  /// whoever is called serves many, and its link is the one that fills.
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
  IncomingShares shares_;  // of the thread that ticks
  TimePoint ticked_ = std::chrono::steady_clock::now();
  std::optional<HeartbeatThread> heartbeats_;
};

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options);

}  // namespace paceline
