// Accepts sockets at one address and joins them in pairs. A socket that stays silent or alone is
// dropped; until its pair is there it costs a few hundred bytes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "net/accept/offer.h"
#include "net/accept/preamble.h"
#include "net/accept/socket_acceptor.h"
#include "net/link.h"
#include "net/tcp/tcp_connections.h"
#include "net/tls/link_streams.h"

namespace paceline {

class TcpAcceptor final : public SocketAcceptor {
 public:
  /// `offer` is told to callers who ask for shared memory.
  TcpAcceptor(std::shared_ptr<TcpConnections> connections,
              std::shared_ptr<const LinkStreams> streams, FileDescriptor listening,
              Acceptor acceptor, std::optional<Offer> offer,
              std::function<void(const std::string&)> refused);

  const LinkStreams& streams() const { return *streams_; }

  /// Is called when a socket has said what it is for.
  void greeted(const Preamble& preamble, StreamSocket socket);

 private:
  struct Single {
    SocketRole role;
    StreamSocket socket;
  };

  std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) override;
  std::size_t waiting() const override { return singles_.size(); }
  void drop_waiting() override { singles_.clear(); }
  void answer(const StreamSocket& socket) const;
  void wait_for_twin(const Preamble& preamble, StreamSocket socket);
  void drop_single(const Preamble::Token& token);
  void open(StreamSocket data, StreamSocket control);
  std::weak_ptr<TcpAcceptor> weak_self();

  const std::shared_ptr<TcpConnections> connections_;
  const std::shared_ptr<const LinkStreams> streams_;
  const Acceptor acceptor_;
  const std::optional<Offer> offer_;
  std::map<Preamble::Token, Single> singles_;
};

}  // namespace paceline
