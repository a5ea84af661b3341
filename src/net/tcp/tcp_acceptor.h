// Accepts sockets at one address and joins them in pairs. A socket that stays silent or alone is
// dropped; until its pair is there it costs a few hundred bytes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "net/link.h"
#include "net/tcp/poller.h"
#include "net/tcp/preamble.h"
#include "net/tcp/tcp_connections.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {

class Greeting;

class TcpAcceptor final : public Watcher, public std::enable_shared_from_this<TcpAcceptor> {
 public:
  TcpAcceptor(std::shared_ptr<TcpConnections> connections, FileDescriptor listening,
              Acceptor acceptor);

  void start();
  void stop();
  /// A socket has said what it is.
  void greeted(const std::shared_ptr<Greeting>& greeting, const Preamble& preamble,
               FileDescriptor socket);
  /// A socket has closed, talked nonsense, or stayed silent too long.
  void drop(const std::shared_ptr<Greeting>& greeting);

 private:
  struct Single {
    SocketRole role;
    FileDescriptor socket;
  };

  void on_readable() override;
  void on_writable() override {}
  void accept_all();
  void welcome(FileDescriptor socket);
  void wait_for_twin(const Preamble& preamble, FileDescriptor socket);
  void drop_single(const Preamble::Token& token);
  void open(FileDescriptor data, FileDescriptor control);
  void start_after_pause();

  const std::shared_ptr<TcpConnections> connections_;
  const Acceptor acceptor_;
  std::mutex mutex_;
  std::optional<Watch> listening_;
  std::set<std::shared_ptr<Greeting>> greetings_;
  std::map<Preamble::Token, Single> singles_;
};

}  // namespace paceline
