// Accepts tasks of this host at an abstract Unix socket.
#pragma once

#include <memory>
#include <set>

#include "net/link.h"
#include "net/shm/shm_connections.h"
#include "net/tcp/offer.h"
#include "net/tcp/socket_acceptor.h"

namespace paceline {

class ShmGreeting;

class ShmAcceptor final : public SocketAcceptor {
 public:
  /// Listens where `offer` says. Throws kUnavailable.
  ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer, Acceptor acceptor);

  /// A caller knows the token.
  void greeted(const std::shared_ptr<ShmGreeting>& greeting,
               std::shared_ptr<const SharedMemory> memory, FileDescriptor socket);
  /// A socket has closed, talked nonsense, or stayed silent too long.
  void drop(const std::shared_ptr<ShmGreeting>& greeting);

 private:
  void welcome(FileDescriptor socket) override;
  void drop_all() override;
  void open(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket);
  std::weak_ptr<ShmAcceptor> weak_self();

  const std::shared_ptr<ShmConnections> connections_;
  const Preamble::Token token_;
  const Acceptor acceptor_;
  std::set<std::shared_ptr<ShmGreeting>> greetings_;
};

}  // namespace paceline
