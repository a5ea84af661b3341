#include "net/shm/shm_socket.h"

#include <sys/socket.h>

#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {

ShmSocket::ShmSocket(std::shared_ptr<Poller> poller, FileDescriptor socket)
    : socket_(std::in_place, std::move(poller), std::move(socket)), fd_(socket_->fd()) {}

bool ShmSocket::take_in(std::shared_ptr<Watcher> watcher) {
  std::lock_guard lock(mutex_);
  if (!socket_ || !take_in_locked()) return false;
  socket_->wait_readable(std::move(watcher));
  return true;
}

bool ShmSocket::take_in_locked() {
  using Outcome = UnixMessage::Outcome;
  while (true) {
    UnixMessage message = receive_message(fd_, kSharedMessage.size());
    if (message.outcome == Outcome::kNothing) return true;
    if (message.outcome == Outcome::kClosed) return false;
    if (message.outcome == Outcome::kGarbage || message.text != kSharedMessage || !message.passed)
      throw Error(ErrorCode::kDataLoss, "garbage came over the Unix socket");
    if (waiting_.size() == kMostSharedWaiting)
      throw Error(ErrorCode::kDataLoss, "more memories came than it may share at a time");
    waiting_.push(std::move(message.passed));
  }
}

void ShmSocket::pass(const SharedMemory& memory) {
  std::lock_guard lock(mutex_);
  if (!socket_ || !send_message(fd_, kSharedMessage, memory.fd()))
    throw Error(ErrorCode::kUnavailable, "closed the connection or died");
}

std::shared_ptr<const SharedMemory> ShmSocket::take() {
  std::unique_lock lock(mutex_);
  if (waiting_.empty() && socket_) take_in_locked();
  if (waiting_.empty())
    throw Error(ErrorCode::kDataLoss, "it claims to share a memory that did not come");
  FileDescriptor passed = waiting_.pop();
  lock.unlock();
  return SharedMemory::open(std::move(passed));
}

void ShmSocket::shut_down() {
  std::lock_guard lock(mutex_);
  if (socket_) ::shutdown(fd_, SHUT_RDWR);
}

void ShmSocket::close() {
  std::lock_guard lock(mutex_);
  socket_.reset();
}

}  // namespace paceline
