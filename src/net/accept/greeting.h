// Hears what an accepted socket says first, and reads not one byte more.
#pragma once

#include <memory>
#include <mutex>

#include "net/poll/poller.h"
#include "net/stream/byte_stream.h"

namespace paceline {

class SocketAcceptor;

class Greeting : public Watcher, public std::enable_shared_from_this<Greeting> {
 public:
  Greeting(std::weak_ptr<SocketAcceptor> acceptor, std::shared_ptr<Poller> poller,
           FileDescriptor socket);

  void start();
  /// Closes the socket, unless it was handed on already.
  void stop();

 protected:
  // The acceptor lives while these run. Both throw Error when the socket is of no use.
  /// Reads, and returns kNothing when all of the greeting has arrived, or else what it waits for.
  /// Called with the mutex.
  virtual ByteStream::Need hear(int fd) = 0;
  virtual void hand_on(FileDescriptor socket) = 0;

 private:
  void on_readable() override { go_on(); }
  void on_writable() override { go_on(); }
  void go_on();

  const std::weak_ptr<SocketAcceptor> acceptor_;
  std::mutex mutex_;
  std::unique_ptr<Watch> socket_;
};

}  // namespace paceline
