#include "net/accept/socket_acceptor.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/accept/greeting.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);

}  // namespace

SocketAcceptor::SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening,
                               Patience patience)
    : poller_(std::move(poller)),
      patience_(patience),
      listening_(std::in_place, poller_, std::move(listening)) {}

void SocketAcceptor::start() {
  std::lock_guard lock(mutex_);
  if (listening_) listening_->wait_readable(shared_from_this());
}

void SocketAcceptor::stop() {
  std::lock_guard lock(mutex_);
  listening_.reset();
  for (const auto& greeting : greetings_) greeting->stop();
  greetings_.clear();
  drop_waiting();
}

bool SocketAcceptor::leaves(const std::shared_ptr<Greeting>& greeting) {
  std::lock_guard lock(mutex_);
  greetings_.erase(greeting);
  return !stopped();
}

void SocketAcceptor::drop(const std::shared_ptr<Greeting>& greeting) {
  greeting->stop();
  std::lock_guard lock(mutex_);
  greetings_.erase(greeting);
}

void SocketAcceptor::call_late(std::function<void()> call) {
  poller_->call_at(std::chrono::steady_clock::now() + patience_.with_one, std::move(call));
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
      welcome(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return start_after_pause();
    } else if (errno == EAGAIN) {
      return listening_->wait_readable(shared_from_this());
    }
  }
}

void SocketAcceptor::welcome(FileDescriptor socket) {
  if (greetings_.size() + waiting() >= patience_.most_at_once) return;
  try {
    const std::shared_ptr<Greeting> greeting = greeting_of(std::move(socket));
    greetings_.insert(greeting);
    call_late([weak = weak_from_this(), late = std::weak_ptr(greeting)] {
      const auto self = weak.lock();
      const auto still = late.lock();
      if (self && still) self->drop(still);
    });
    greeting->start();
  } catch (const Error&) {
    // The system can watch no more descriptors: the caller sees its connection end.
  }
}

/// A caller that waits keeps the listening socket readable, so waiting for that would spin.
void SocketAcceptor::start_after_pause() {
  const TimePoint then = std::chrono::steady_clock::now() + kPauseWithoutDescriptors;
  poller_->call_at(then, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->start();
  });
}

}  // namespace paceline
