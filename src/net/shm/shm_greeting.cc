#include "net/shm/shm_greeting.h"

#include "net/shm/shm_acceptor.h"
#include "net/shm/shm_handshake.h"
#include "paceline/error.h"

namespace paceline {

ShmGreeting::ShmGreeting(std::weak_ptr<ShmAcceptor> acceptor, const Preamble::Token& token,
                         std::shared_ptr<Poller> poller, FileDescriptor socket)
    : acceptor_(std::move(acceptor)),
      token_(token),
      socket_(std::make_unique<Watch>(std::move(poller), std::move(socket))) {}

void ShmGreeting::start() {
  std::lock_guard lock(mutex_);
  if (socket_) socket_->wait_readable(shared_from_this());
}

void ShmGreeting::stop() {
  std::lock_guard lock(mutex_);
  socket_.reset();
}

void ShmGreeting::on_readable() {
  const std::shared_ptr<ShmAcceptor> acceptor = acceptor_.lock();
  std::unique_lock lock(mutex_);
  if (!socket_ || !acceptor) return;
  try {
    auto memory = take_introduction(socket_->fd(), token_);
    if (!memory) return socket_->wait_readable(shared_from_this());
    FileDescriptor socket = socket_->release();
    socket_.reset();
    lock.unlock();
    acceptor->greeted(shared_from_this(), std::move(memory), std::move(socket));
  } catch (const Error&) {
    if (lock.owns_lock()) lock.unlock();
    acceptor->drop(shared_from_this());  // a stranger: nothing to tell anybody
  }
}

}  // namespace paceline
