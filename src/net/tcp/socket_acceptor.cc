#include "net/tcp/socket_acceptor.h"

#include <sys/socket.h>

#include <cerrno>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);

}  // namespace

SocketAcceptor::SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening)
    : poller_(std::move(poller)), listening_(std::in_place, poller_, std::move(listening)) {}

void SocketAcceptor::start() {
  std::lock_guard lock(mutex_);
  if (listening_) listening_->wait_readable(shared_from_this());
}

void SocketAcceptor::stop() {
  std::lock_guard lock(mutex_);
  listening_.reset();
  drop_all();
}

void SocketAcceptor::on_readable() {
  std::lock_guard lock(mutex_);
  if (listening_) accept_all();
}

void SocketAcceptor::accept_all() {
  while (true) {
    FileDescriptor socket(
        ::accept4(listening_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      guarded_welcome(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return start_after_pause();
    } else if (errno == EAGAIN) {
      return listening_->wait_readable(shared_from_this());
    }
  }
}

void SocketAcceptor::guarded_welcome(FileDescriptor socket) {
  try {
    welcome(std::move(socket));
  } catch (const Error&) {
    // The system can watch no more descriptors: the caller sees its connection end.
  }
}

/// The waiting caller keeps the listening socket readable: waiting for that would spin.
void SocketAcceptor::start_after_pause() {
  const TimePoint then = std::chrono::steady_clock::now() + kPauseWithoutDescriptors;
  poller_->call_at(then, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->start();
  });
}

}  // namespace paceline
