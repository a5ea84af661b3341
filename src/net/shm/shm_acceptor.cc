#include "net/shm/shm_acceptor.h"

#include "net/accept/greeting.h"
#include "net/connection_end.h"
#include "net/shm/shm_connection.h"
#include "net/shm/shm_handshake.h"
#include "net/shm/unix_socket.h"

namespace paceline {
namespace {

constexpr std::size_t kMostShmStrangers = 256;

/// Hears a caller's hello, which has the token and the caller's memory.
class ShmGreeting final : public Greeting {
 public:
  ShmGreeting(ShmAcceptor& acceptor, const Preamble::Token& token, std::shared_ptr<Poller> poller,
              FileDescriptor socket)
      : Greeting(acceptor.weak_from_this(), std::move(poller), std::move(socket)),
        acceptor_(acceptor),
        token_(token) {}

 private:
  ByteStream::Need hear(int fd) override {
    memory_ = take_introduction(fd, token_);
    return memory_ == nullptr ? ByteStream::Need::kReadable : ByteStream::Need::kNothing;
  }
  void hand_on(FileDescriptor socket) override {
    acceptor_.greeted(std::move(memory_), std::move(socket));
  }

  ShmAcceptor& acceptor_;
  const Preamble::Token token_;
  std::shared_ptr<const SharedMemory> memory_;
};

}  // namespace

ShmAcceptor::ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer,
                         Acceptor acceptor, std::function<void(const std::string&)> refused)
    : SocketAcceptor(connections->poller(), listen_at_abstract(offer.socket_name()),
                     {connections->dead_after(), kMostShmStrangers, kMostShmStrangers},
                     std::move(refused)),
      connections_(std::move(connections)),
      token_(offer.token),
      acceptor_(std::move(acceptor)) {}

std::shared_ptr<Greeting> ShmAcceptor::greeting_of(FileDescriptor socket) {
  if (!is_of_this_user(socket.get())) {
    refusals().add(text_of_unix_peer(socket.get()),
                   "memory is shared with the same user's tasks alone");
    throw Error(ErrorCode::kFailedPrecondition, "another user");
  }
  return std::make_shared<ShmGreeting>(*this, token_, poller(), std::move(socket));
}

void ShmAcceptor::greeted(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket) {
  auto own = SharedMemory::create(kShmMemoryBytes);
  if (!introduce(socket.get(), token_, *own)) return;
  const std::string peer = text_of_unix_peer(socket.get());
  const auto connection = std::make_shared<ShmConnection>(connections_, std::move(socket),
                                                          std::move(own), std::move(memory), peer);
  Receiver* receiver = nullptr;
  try {
    receiver = acceptor_(connection);
    connection->start(*receiver);
  } catch (const std::exception&) {
    connection->refuse();
    if (receiver != nullptr) receiver->on_closed(error_of_current_exception(peer));
  }
}

}  // namespace paceline
