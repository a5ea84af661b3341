#include "net/tcp/tcp_link.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/tcp/preamble.h"
#include "net/tcp/tcp_acceptor.h"
#include "net/tcp/tcp_connection.h"

namespace paceline {
namespace {

/// A new socket takes so few bytes at once.
void introduce(int fd, const Preamble& preamble, const std::string& address) {
  const auto bytes = encode(preamble);
  if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()))
    throw error_of_socket(address, errno);
}

class TcpLink : public Link {
 public:
  explicit TcpLink(const LinkOptions& options)
      : connections_(std::make_shared<TcpConnections>(options.threads, options.dead_after)) {
    connections_->poller()->call_every(options.dead_after / Heartbeat::kTicksOfDeath,
                                       [this] { tick(); });
  }

  ~TcpLink() override {
    for (const auto& acceptor : acceptors_) acceptor->stop();
    connections_->poller()->stop();
    for (const auto& connection : connections_->shut())
      connection->end({ErrorCode::kCancelled,
                       "the link of the connection to " + connection->peer() + " was destroyed"});
    connections_->poller()->drop_pending();
  }

  std::string kind() const override { return "tcp"; }

  std::string listen(const std::string& address, Acceptor acceptor) override {
    ListeningSocket socket = listen_at(parse_address(address));
    auto listening =
        std::make_shared<TcpAcceptor>(connections_, std::move(socket.fd), std::move(acceptor));
    listening->start();
    std::lock_guard lock(mutex_);
    acceptors_.push_back(std::move(listening));
    return socket.address;
  }

  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override {
    const auto targets = look_up(parse_address(address), deadline);
    FileDescriptor data = dial(targets, address, deadline);
    FileDescriptor control = dial(targets, address, deadline);
    const Preamble::Token token = random_token();
    introduce(data.get(), {SocketRole::kData, token}, address);
    introduce(control.get(), {SocketRole::kControl, token}, address);
    auto connection =
        std::make_shared<TcpConnection>(connections_, std::move(data), std::move(control), address);
    connection->start(receiver);
    return connection;
  }

  bool help() override {
    bool helped = false;
    for (std::size_t i = 0; const auto connection = connections_->at(i); ++i)
      helped = connection->help() || helped;
    return helped;
  }

  void set_spinning(bool spinning) override {
    connections_->set_spinning(spinning);
    if (connections_->spinning()) return;
    for (const auto& connection : connections_->all()) connection->wait_readable();
  }

 private:
  void tick() {
    for (std::size_t i = 0; const auto connection = connections_->at(i); ++i) connection->tick();
  }

  const std::shared_ptr<TcpConnections> connections_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<TcpAcceptor>> acceptors_;
};

}  // namespace

std::unique_ptr<Link> make_tcp_link(const LinkOptions& options) {
  return std::make_unique<TcpLink>(options);
}

}  // namespace paceline
