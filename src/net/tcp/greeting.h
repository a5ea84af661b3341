// Reads the preamble of an accepted socket, and not one byte more.
#pragma once

#include <memory>
#include <mutex>

#include "net/poller.h"
#include "net/tcp/preamble.h"

namespace paceline {

class TcpAcceptor;

class Greeting final : public Watcher, public std::enable_shared_from_this<Greeting> {
 public:
  Greeting(std::weak_ptr<TcpAcceptor> acceptor, std::shared_ptr<Poller> poller,
           FileDescriptor socket);

  void start();
  /// Closes the socket, unless it was handed on.
  void stop();

 private:
  void on_readable() override;
  void on_writable() override {}
  bool read();

  const std::weak_ptr<TcpAcceptor> acceptor_;
  std::mutex mutex_;
  std::unique_ptr<Watch> socket_;
  std::array<std::byte, kPreambleBytes> bytes_;
  std::size_t filled_ = 0;
};

}  // namespace paceline
