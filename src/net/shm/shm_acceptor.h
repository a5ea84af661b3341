// Accepts tasks of this host and this user at an abstract Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/accept/offer.h"
#include "net/accept/socket_acceptor.h"
#include "net/link.h"
#include "net/shm/shm_connections.h"

namespace paceline {

class ShmAcceptor final : public SocketAcceptor {
 public:
  /// Listens where `offer` says. Throws kUnavailable.
  ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer, Acceptor acceptor,
              std::function<void(const std::string&)> refused);

  /// Is called for a caller that knows the token.
  void greeted(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket);

 private:
  std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) override;

  const std::shared_ptr<ShmConnections> connections_;
  const Preamble::Token token_;
  const Acceptor acceptor_;
};

}  // namespace paceline
