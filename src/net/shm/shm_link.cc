// Each side writes only its own memory, which the other side maps read-only: a peer can lie, but
// cannot do harm. Two tasks share memory if the caller reaches the abstract Unix socket of the
// listener. Equal host names do not prove that they can.
#include "net/shm/shm_link.h"

#include <utility>

#include "net/accept/greeting.h"
#include "net/accept/offer.h"
#include "net/accept/socket_acceptor.h"
#include "net/connection_end.h"
#include "net/liveness_timer.h"
#include "net/shm/shm_connection.h"
#include "net/shm/shm_handshake.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {

/// Accepts tasks of this host and this user at an abstract Unix socket.
class ShmAcceptor final : public SocketAcceptor {
 public:
  /// Listens at the socket that `offer` names. Throws kUnavailable.
  ShmAcceptor(std::shared_ptr<ShmConnections> connections, const Offer& offer, Acceptor acceptor,
              std::function<void(const std::string&)> refused);

  /// Connects a caller that has sent the token and its memory.
  void greeted(std::shared_ptr<const SharedMemory> memory, FileDescriptor socket);

 private:
  std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) override;

  const std::shared_ptr<ShmConnections> connections_;
  const Preamble::Token token_;
  const Acceptor acceptor_;
};

namespace {

constexpr std::size_t kMostShmStrangers = 256;

/// Reads a caller's hello, which has the token and the caller's memory.
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

namespace {

Receiver* refuse_other_hosts(const std::shared_ptr<Connection>& connection) {
  throw Error(ErrorCode::kUnavailable,
              "--link shm: " + connection->peer() + " is no task of this host");
}

/// Refuses the address. The error is kUnavailable if nothing was offered: a listener that is about
/// to end makes no offer, and the next try may find another listener. Otherwise it is
/// kInvalidArgument.
[[noreturn]] void refuse_address(const std::string& address, bool offered) {
  const std::string what = "--link shm: no memory can be shared with " + address;
  if (!offered)
    throw Error(ErrorCode::kUnavailable,
                what + ": it offers none (was it started with --link tcp?)");
  throw Error(
      ErrorCode::kInvalidArgument,
      what +
          ": it is on another host, in another network namespace or another user's; --link auto "
          "takes tcp then");
}

}  // namespace

ShmLink::ShmLink(const LinkOptions& options, std::shared_ptr<Rendezvous> rendezvous)
    : rendezvous_(std::move(rendezvous)),
      refused_(options.refused),
      connections_(std::make_shared<ShmConnections>(rendezvous_->poller(), options)),
      heartbeats_(
          std::in_place, options.dead_after / LivenessTimer::kTicksOfDeath,
          [this] { connections_->tick(); }, options.ticks) {}

ShmLink::~ShmLink() {
  for (const auto& acceptor : acceptors_) acceptor->stop();
  heartbeats_.reset();
  for (const auto& connection : connections_->shut())
    connection->end({ErrorCode::kCancelled,
                     "the link of the connection to " + connection->peer() + " was destroyed"});
}

std::string ShmLink::listen(const std::string& address, Acceptor acceptor) {
  return listen(address, std::move(acceptor), refuse_other_hosts);
}

std::string ShmLink::listen(const std::string& address, Acceptor acceptor, Acceptor others) {
  const Offer offer{random_token(), random_token()};
  auto listening =
      std::make_shared<ShmAcceptor>(connections_, offer, std::move(acceptor), refused_);
  // The address is published before the acceptor starts. A caller that gets the offer in between
  // waits at the socket until the acceptor has started.
  std::string published_at = rendezvous_->publish(address, offer, std::move(others));
  listening->start();
  std::lock_guard lock(mutex_);
  acceptors_.push_back(std::move(listening));
  return published_at;
}

std::shared_ptr<Connection> ShmLink::connect(const std::string& address, Receiver& receiver,
                                             Deadline deadline) {
  const std::optional<Offer> offer = rendezvous_->ask_for_offer(address, deadline);
  std::shared_ptr<Connection> connection;
  if (offer) connection = connect(*offer, address, receiver, deadline);
  if (connection == nullptr) refuse_address(address, offer.has_value());
  return connection;
}

std::shared_ptr<Connection> ShmLink::connect(const Offer& offer, const std::string& address,
                                             Receiver& receiver, Deadline deadline) {
  std::optional<ShmReached> reached = reach(offer, address, deadline);
  if (!reached) return nullptr;
  auto connection =
      std::make_shared<ShmConnection>(connections_, std::move(reached->socket),
                                      std::move(reached->own), std::move(reached->peers), address);
  connection->start(receiver);
  return connection;
}

bool ShmLink::help() { return connections_->help(); }

}  // namespace paceline
