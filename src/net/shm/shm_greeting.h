// Reads the hello of a Unix socket that was accepted.
#pragma once

#include <memory>
#include <mutex>

#include "net/poller.h"
#include "net/tcp/preamble.h"

namespace paceline {

class ShmAcceptor;

class ShmGreeting final : public Watcher, public std::enable_shared_from_this<ShmGreeting> {
 public:
  ShmGreeting(std::weak_ptr<ShmAcceptor> acceptor, const Preamble::Token& token,
              std::shared_ptr<Poller> poller, FileDescriptor socket);

  void start();
  /// Closes the socket, unless it was handed on.
  void stop();

 private:
  void on_readable() override;
  void on_writable() override {}

  const std::weak_ptr<ShmAcceptor> acceptor_;
  const Preamble::Token token_;
  std::mutex mutex_;
  std::unique_ptr<Watch> socket_;
};

}  // namespace paceline
