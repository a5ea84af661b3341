#include "net/tcp/tcp_acceptor.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/tcp/greeting.h"
#include "net/tcp/tcp_connection.h"

namespace paceline {
namespace {

constexpr std::size_t kMostStrangers = 1024;
constexpr Duration kPauseWithoutDescriptors = std::chrono::milliseconds(100);

}  // namespace

TcpAcceptor::TcpAcceptor(std::shared_ptr<TcpConnections> connections, FileDescriptor listening,
                         Acceptor acceptor)
    : connections_(std::move(connections)),
      acceptor_(std::move(acceptor)),
      listening_(std::in_place, connections_->poller(), std::move(listening)) {}

void TcpAcceptor::start() {
  std::lock_guard lock(mutex_);
  if (listening_) listening_->wait_readable(shared_from_this());
}

void TcpAcceptor::stop() {
  std::lock_guard lock(mutex_);
  listening_.reset();
  for (const auto& greeting : greetings_) greeting->stop();
  greetings_.clear();
  singles_.clear();
}

void TcpAcceptor::on_readable() {
  std::lock_guard lock(mutex_);
  if (listening_) accept_all();
}

void TcpAcceptor::accept_all() {
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

/// The waiting caller keeps the listening socket readable: waiting for that would spin.
void TcpAcceptor::start_after_pause() {
  const TimePoint then = std::chrono::steady_clock::now() + kPauseWithoutDescriptors;
  connections_->poller()->call_at(then, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->start();
  });
}

void TcpAcceptor::welcome(FileDescriptor socket) {
  if (greetings_.size() + singles_.size() >= kMostStrangers) return;
  set_up_socket(socket.get());
  const auto greeting =
      std::make_shared<Greeting>(weak_from_this(), connections_->poller(), std::move(socket));
  greetings_.insert(greeting);
  const TimePoint latest = std::chrono::steady_clock::now() + connections_->dead_after();
  connections_->poller()->call_at(
      latest, [self = weak_from_this(), late = std::weak_ptr<Greeting>(greeting)] {
        const auto acceptor = self.lock();
        const auto still = late.lock();
        if (acceptor && still) acceptor->drop(still);
      });
  greeting->start();
}

void TcpAcceptor::drop(const std::shared_ptr<Greeting>& greeting) {
  greeting->stop();
  std::lock_guard lock(mutex_);
  greetings_.erase(greeting);
}

void TcpAcceptor::greeted(const std::shared_ptr<Greeting>& greeting, const Preamble& preamble,
                          FileDescriptor socket) {
  std::unique_lock lock(mutex_);
  greetings_.erase(greeting);
  if (!listening_) return;
  const auto twin = singles_.find(preamble.token);
  if (twin == singles_.end()) return wait_for_twin(preamble, std::move(socket));
  if (twin->second.role == preamble.role) return;
  FileDescriptor other = std::move(twin->second.socket);
  singles_.erase(twin);
  lock.unlock();
  if (preamble.role == SocketRole::kData) {
    open(std::move(socket), std::move(other));
  } else {
    open(std::move(other), std::move(socket));
  }
}

void TcpAcceptor::wait_for_twin(const Preamble& preamble, FileDescriptor socket) {
  singles_.emplace(preamble.token, Single{preamble.role, std::move(socket)});
  const TimePoint latest = std::chrono::steady_clock::now() + connections_->dead_after();
  connections_->poller()->call_at(latest, [weak = weak_from_this(), token = preamble.token] {
    if (const auto self = weak.lock()) self->drop_single(token);
  });
}

void TcpAcceptor::drop_single(const Preamble::Token& token) {
  std::lock_guard lock(mutex_);
  singles_.erase(token);
}

void TcpAcceptor::open(FileDescriptor data, FileDescriptor control) {
  const std::string peer = text_of(peer_of(data.get()));
  const auto connection =
      std::make_shared<TcpConnection>(connections_, std::move(data), std::move(control), peer);
  try {
    connection->start(*acceptor_(connection));
  } catch (const std::exception&) {
    connection->refuse();
  }
}

}  // namespace paceline
