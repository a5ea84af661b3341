#include "net/tcp/greeting.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/tcp/tcp_acceptor.h"

namespace paceline {

Greeting::Greeting(std::weak_ptr<TcpAcceptor> acceptor, std::shared_ptr<Poller> poller,
                   FileDescriptor socket)
    : acceptor_(std::move(acceptor)),
      socket_(std::make_unique<Watch>(std::move(poller), std::move(socket))) {}

void Greeting::start() {
  std::lock_guard lock(mutex_);
  if (socket_) socket_->wait_readable(shared_from_this());
}

void Greeting::stop() {
  std::lock_guard lock(mutex_);
  socket_.reset();
}

/// False when the socket is of no use any more.
bool Greeting::read() {
  const ssize_t got = ::recv(socket_->fd(), bytes_.data() + filled_, bytes_.size() - filled_, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  filled_ += std::size_t(got);
  return got > 0;
}

void Greeting::on_readable() {
  const std::shared_ptr<TcpAcceptor> acceptor = acceptor_.lock();
  std::unique_lock lock(mutex_);
  if (!socket_ || !acceptor) return;
  const bool useful = read();
  if (useful && filled_ < kPreambleBytes) return socket_->wait_readable(shared_from_this());
  FileDescriptor socket = socket_->release();
  socket_.reset();
  lock.unlock();
  try {
    if (!useful) return acceptor->drop(shared_from_this());
    acceptor->greeted(shared_from_this(), decode_preamble(bytes_), std::move(socket));
  } catch (const Error&) {
    acceptor->drop(shared_from_this());  // a stranger: nothing to tell anybody
  }
}

}  // namespace paceline
