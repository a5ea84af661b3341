// Accepts tasks of this host at an abstract Unix socket.
#pragma once

#include <memory>

#include "net/link.h"
#include "net/shm/shm_connections.h"
#include "net/tcp/offer.h"
#include "net/tcp/socket_acceptor.h"

namespace paceline {

class ShmAcceptor final : public SocketAcceptor {
 public:
  /// Listens where `offer` says. Throws kUnavailable.
  ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer, Acceptor acceptor);

  /// A caller knows the token.
  void greeted(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket);

 private:
  std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) override;

  const std::shared_ptr<ShmConnections> connections_;
  const Preamble::Token token_;
  const Acceptor acceptor_;
};

}  // namespace paceline
