#include "net/accept/socket_acceptor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/address.h"
#include "net/accept/greeting.h"

namespace paceline {
namespace {

constexpr Duration kEach = std::chrono::seconds(1);
constexpr int kAtOnce = 5;

}  // namespace

void Refusals::add(const std::string& caller, const std::string& why) {
  if (!tell_) return;
  std::string line = caller + " was refused: " + why;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = std::chrono::steady_clock::now();
    if (full_ > now + (kAtOnce - 1) * kEach) {
      ++untold_;
      return;
    }
    full_ = std::max(full_, now) + kEach;
    if (untold_ > 0) line += " (and " + std::to_string(untold_) + " others since the last line)";
    untold_ = 0;
  }
  tell_(line);
}

namespace {

constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);

}  // namespace

SocketAcceptor::SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening,
                               Patience patience, std::function<void(const std::string&)> refused)
    : poller_(std::move(poller)),
      patience_(patience),
      listening_(std::in_place, poller_, std::move(listening)),
      refusals_(std::move(refused)) {}

void SocketAcceptor::start() {
  std::lock_guard lock(mutex_);
  if (listening_) listening_->wait_readable(shared_from_this());
}

void SocketAcceptor::stop() {
  std::lock_guard lock(mutex_);
  listening_.reset();
  for (const auto& greeting : greetings_) greeting->stop();
  greetings_.clear();
  of_host_.clear();
  drop_waiting();
}

bool SocketAcceptor::leaves(const std::shared_ptr<Greeting>& greeting) {
  std::lock_guard lock(mutex_);
  forget(greeting);
  return !stopped();
}

void SocketAcceptor::tell_refused(const Greeting& greeting, const Error& why) {
  refusals_.add(greeting.caller(), why.what());
}

/// Drops a caller. Nobody needs to hear of a caller that leaves before it has said anything, as a
/// port probe does.
void SocketAcceptor::drop(const std::shared_ptr<Greeting>& greeting, const Error& why) {
  greeting->stop();
  {
    std::lock_guard lock(mutex_);
    forget(greeting);
  }
  if (why.code() != ErrorCode::kUnavailable) tell_refused(*greeting, why);
}

/// The caller holds the mutex.
void SocketAcceptor::forget(const std::shared_ptr<Greeting>& greeting) {
  if (greetings_.erase(greeting) == 0) return;
  const auto host = of_host_.find(host_of(greeting->caller()));
  if (--host->second == 0) of_host_.erase(host);
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
    std::size_t& of_host = of_host_[host_of(greeting->caller())];
    if (of_host >= patience_.most_of_one) return;
    ++of_host;
    greetings_.insert(greeting);
    call_late([weak = weak_from_this(), late = std::weak_ptr(greeting)] {
      const auto self = weak.lock();
      const auto still = late.lock();
      if (self && still) self->drop(still, still->error_of_silence());
    });
    greeting->start();
  } catch (const Error&) {
    // This happens if the system can watch no more descriptors, or if the caller is not admitted.
    // The caller sees its connection end.
  }
}

/// Accepts again after a pause. A caller that waits keeps the listening socket readable, so waiting
/// for the socket would return at once, again and again.
void SocketAcceptor::start_after_pause() {
  const TimePoint then = std::chrono::steady_clock::now() + kPauseWithoutDescriptors;
  poller_->call_at(then, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->start();
  });
}

}  // namespace paceline
