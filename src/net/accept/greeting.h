// Reads the first message of an accepted socket, and not one byte more.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "net/poll/poller.h"
#include "net/stream/byte_stream.h"
#include "paceline/error.h"

namespace paceline {

class SocketAcceptor;

class Greeting : public Watcher, public std::enable_shared_from_this<Greeting> {
 public:
  Greeting(std::weak_ptr<SocketAcceptor> acceptor, std::shared_ptr<Poller> poller,
           FileDescriptor socket, std::string caller = "");

  void start();
  /// Closes the socket, unless it was already handed on.
  void stop();
  /// The caller's address, for messages; empty if callers have none.
  const std::string& caller() const { return caller_; }
  /// Returns the error for a caller that has not said everything in time. The error is kUnavailable
  /// if the caller has said nothing, or was already refused.
  Error error_of_silence() const;

 protected:
  // The acceptor lives while these two run. Both throw Error if the socket is of no use; `hear`
  // also throws kFailedPrecondition for a refused caller.
  /// Reads what has arrived. Returns kNothing if the whole greeting has arrived; otherwise the
  /// event to wait for. The caller holds the mutex.
  virtual ByteStream::Need hear(int fd) = 0;
  virtual void hand_on(FileDescriptor socket) = 0;
  /// The caller has said something.
  void begins() { begun_ = true; }

 private:
  void on_readable() override { go_on(); }
  void on_writable() override { go_on(); }
  void go_on();
  void refuse(SocketAcceptor& acceptor, const Error& why);
  bool hear_out() const;

  const std::weak_ptr<SocketAcceptor> acceptor_;
  const std::string caller_;
  std::atomic<bool> begun_{false}, refused_{false};
  std::mutex mutex_;
  std::unique_ptr<Watch> socket_;
};

}  // namespace paceline
