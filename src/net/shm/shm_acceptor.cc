#include "net/shm/shm_acceptor.h"

#include "net/shm/shm_connection.h"
#include "net/shm/shm_greeting.h"
#include "net/shm/shm_handshake.h"
#include "net/shm/unix_socket.h"

namespace paceline {
namespace {

constexpr std::size_t kMostShmStrangers = 256;

}  // namespace

ShmAcceptor::ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer,
                         Acceptor acceptor)
    : SocketAcceptor(connections->poller(), listen_at_abstract(offer.socket_name())),
      connections_(std::move(connections)),
      token_(offer.token),
      acceptor_(std::move(acceptor)) {}

std::weak_ptr<ShmAcceptor> ShmAcceptor::weak_self() {
  return std::static_pointer_cast<ShmAcceptor>(shared_from_this());
}

void ShmAcceptor::drop_all() {
  for (const auto& greeting : greetings_) greeting->stop();
  greetings_.clear();
}

void ShmAcceptor::welcome(FileDescriptor socket) {
  if (greetings_.size() >= kMostShmStrangers) return;
  const auto greeting =
      std::make_shared<ShmGreeting>(weak_self(), token_, poller(), std::move(socket));
  greetings_.insert(greeting);
  const TimePoint latest = std::chrono::steady_clock::now() + connections_->dead_after();
  poller()->call_at(latest, [self = weak_self(), late = std::weak_ptr<ShmGreeting>(greeting)] {
    const auto acceptor = self.lock();
    const auto still = late.lock();
    if (acceptor && still) acceptor->drop(still);
  });
  greeting->start();
}

void ShmAcceptor::drop(const std::shared_ptr<ShmGreeting>& greeting) {
  greeting->stop();
  std::lock_guard lock(mutex_);
  greetings_.erase(greeting);
}

void ShmAcceptor::greeted(const std::shared_ptr<ShmGreeting>& greeting,
                          std::shared_ptr<const SharedMemory> memory, FileDescriptor socket) {
  {
    std::lock_guard lock(mutex_);
    greetings_.erase(greeting);
    if (stopped()) return;
  }
  open(std::move(memory), std::move(socket));
}

void ShmAcceptor::open(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket) {
  auto own = SharedMemory::create(kShmMemoryBytes);
  if (!introduce(socket.get(), token_, *own)) return;
  const std::string peer = text_of_unix_peer(socket.get());
  const auto connection = std::make_shared<ShmConnection>(connections_, std::move(socket),
                                                          std::move(own), std::move(memory), peer);
  try {
    connection->start(*acceptor_(connection));
  } catch (const std::exception&) {
    connection->refuse();
  }
}

}  // namespace paceline
