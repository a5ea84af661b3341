// Links between processes and hosts over TCP. Preamble, control connection and heartbeats:
// docs/wire.md.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "net/tcp/offer.h"
#include "net/tcp/tcp_connections.h"
#include "net/tcp/tcp_waiter.h"

namespace paceline {

class TcpAcceptor;

class TcpLink : public Link {
 public:
  explicit TcpLink(const LinkOptions& options);
  ~TcpLink() override;

  std::string kind() const override { return "tcp"; }
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override;
  bool wait(const EventFd& wake, Deadline deadline, const std::function<bool()>& come) override;
  void set_spinning(bool spinning) override;

  /// As listen; callers who ask for shared memory are told `offer`.
  std::string listen(const std::string& address, Acceptor acceptor, std::optional<Offer> offer);
  /// The offer of the listener at `address`; none when it shares no memory. Throws what connect
  /// throws.
  std::optional<Offer> ask_for_offer(const std::string& address, Deadline deadline);
  const std::shared_ptr<Poller>& poller() const { return connections_->poller(); }

 private:
  const std::shared_ptr<TcpConnections> connections_;
  TcpWaiter waiter_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<TcpAcceptor>> acceptors_;
  std::optional<HeartbeatThread> heartbeats_;
};

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options);

}  // namespace paceline
