#include "net/tcp/tcp_acceptor.h"

#include <sys/socket.h>

#include "net/tcp/greeting.h"
#include "net/tcp/tcp_connection.h"
#include "net/tcp/tcp_socket.h"

namespace paceline {
namespace {

constexpr std::size_t kMostStrangers = 1024;

}  // namespace

TcpAcceptor::TcpAcceptor(std::shared_ptr<TcpConnections> connections, FileDescriptor listening,
                         Acceptor acceptor, std::optional<Offer> offer)
    : SocketAcceptor(connections->poller(), std::move(listening)),
      connections_(std::move(connections)),
      acceptor_(std::move(acceptor)),
      offer_(offer) {}

std::weak_ptr<TcpAcceptor> TcpAcceptor::weak_self() {
  return std::static_pointer_cast<TcpAcceptor>(shared_from_this());
}

void TcpAcceptor::drop_all() {
  for (const auto& greeting : greetings_) greeting->stop();
  greetings_.clear();
  singles_.clear();
}

void TcpAcceptor::welcome(FileDescriptor socket) {
  if (greetings_.size() + singles_.size() >= kMostStrangers) return;
  set_up_socket(socket.get());
  const auto greeting =
      std::make_shared<Greeting>(weak_self(), connections_->poller(), std::move(socket));
  greetings_.insert(greeting);
  const TimePoint latest = std::chrono::steady_clock::now() + connections_->dead_after();
  connections_->poller()->call_at(latest,
                                  [self = weak_self(), late = std::weak_ptr<Greeting>(greeting)] {
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
  if (stopped()) return;
  if (preamble.role == SocketRole::kOffer) return answer(socket);
  if (preamble.role == SocketRole::kSharedMemory) return;  // not over TCP
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

/// A new socket takes so few bytes at once.
void TcpAcceptor::answer(const FileDescriptor& socket) const {
  if (!offer_) return;
  const auto bytes = encode(*offer_);
  (void)!::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpAcceptor::wait_for_twin(const Preamble& preamble, FileDescriptor socket) {
  singles_.emplace(preamble.token, Single{preamble.role, std::move(socket)});
  const TimePoint latest = std::chrono::steady_clock::now() + connections_->dead_after();
  connections_->poller()->call_at(latest, [weak = weak_self(), token = preamble.token] {
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
