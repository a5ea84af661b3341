// Accepts the sockets that come to one that listens, and waits while descriptors are out.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "net/poller.h"

namespace paceline {

class SocketAcceptor : public Watcher, public std::enable_shared_from_this<SocketAcceptor> {
 public:
  SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening);

  void start();
  /// Accepts no more; lets go of all that came and is no connection yet.
  void stop();

 protected:
  /// A socket has come, non-blocking. Called with the mutex.
  virtual void welcome(FileDescriptor socket) = 0;
  /// Called with the mutex.
  virtual void drop_all() = 0;
  bool stopped() const { return !listening_; }
  const std::shared_ptr<Poller>& poller() const { return poller_; }

  std::mutex mutex_;

 private:
  void on_readable() override;
  void on_writable() override {}
  void accept_all();
  void guarded_welcome(FileDescriptor socket);
  void start_after_pause();

  const std::shared_ptr<Poller> poller_;
  std::optional<Watch> listening_;
};

}  // namespace paceline
