// Links between tasks of one host through shared memory. Tasks find each other through the
// listener's address, at which the rendezvous answers: see docs/wire.md.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "net/accept/rendezvous.h"
#include "net/heartbeat_thread.h"
#include "net/link.h"
#include "net/shm/shm_connections.h"

namespace paceline {

class ShmAcceptor;

/// Treats a task in another network namespace as one on another host.
class ShmLink : public Link {
 public:
  ShmLink(const LinkOptions& options, std::shared_ptr<Rendezvous> rendezvous);
  ~ShmLink() override;

  std::string kind() const override { return "shm"; }
  /// Refuses tasks of other hosts that connect.
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override;

  /// Listens, and gives a caller that connects without shared memory to `others`.
  std::string listen(const std::string& address, Acceptor acceptor, Acceptor others);
  /// Connects to the listener that made the offer. Returns null if the listener is on another host,
  /// in another network namespace, or another user's.
  std::shared_ptr<Connection> connect(const Offer& offer, const std::string& address,
                                      Receiver& receiver, Deadline deadline);
  bool has_connections() const { return !connections_->none(); }

 private:
  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::function<void(const std::string&)> refused_;
  const std::shared_ptr<ShmConnections> connections_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<ShmAcceptor>> acceptors_;
  std::optional<HeartbeatThread> heartbeats_;
};

}  // namespace paceline
