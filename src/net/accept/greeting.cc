#include "net/accept/greeting.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "net/accept/socket_acceptor.h"
#include "paceline/error.h"

namespace paceline {

Greeting::Greeting(std::weak_ptr<SocketAcceptor> acceptor, std::shared_ptr<Poller> poller,
                   FileDescriptor socket, std::string caller)
    : acceptor_(std::move(acceptor)),
      caller_(std::move(caller)),
      socket_(std::make_unique<Watch>(std::move(poller), std::move(socket))) {}

void Greeting::start() {
  std::lock_guard lock(mutex_);
  if (socket_) socket_->wait_readable(shared_from_this());
}

void Greeting::stop() {
  std::lock_guard lock(mutex_);
  socket_.reset();
}

Error Greeting::error_of_silence() const {
  if (!begun_ || refused_) return {ErrorCode::kUnavailable, "it said nothing"};
  return {ErrorCode::kDeadlineExceeded, "it stopped before it had said what it is"};
}

void Greeting::go_on() {
  const std::shared_ptr<SocketAcceptor> acceptor = acceptor_.lock();
  std::unique_lock lock(mutex_);
  if (!socket_ || !acceptor) return;
  try {
    if (refused_ && !hear_out())
      throw Error(ErrorCode::kUnavailable, "closed after it was refused");
    if (refused_) return socket_->wait_readable(shared_from_this());
    const ByteStream::Need need = hear(socket_->fd());
    if (need == ByteStream::Need::kReadable) return socket_->wait_readable(shared_from_this());
    if (need == ByteStream::Need::kWritable) return socket_->wait_writable(shared_from_this());
    FileDescriptor socket = socket_->release();
    socket_.reset();
    lock.unlock();
    if (acceptor->leaves(shared_from_this())) hand_on(std::move(socket));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kFailedPrecondition && socket_) return refuse(*acceptor, error);
    if (lock.owns_lock()) lock.unlock();
    acceptor->drop(shared_from_this(), error);
  }
}

/// The caller must be able to read why it is refused. If a socket is closed while bytes from the
/// caller are unread, the caller loses that message. So the socket stays open until the caller
/// closes it.
void Greeting::refuse(SocketAcceptor& acceptor, const Error& why) {
  refused_ = true;
  acceptor.tell_refused(*this, why);
  ::shutdown(socket_->fd(), SHUT_WR);
  socket_->wait_readable(shared_from_this());
}

/// Discards what has arrived. Returns false if the caller has closed the socket.
bool Greeting::hear_out() const {
  std::array<char, 4096> bytes;
  const ssize_t got = ::recv(socket_->fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace paceline
