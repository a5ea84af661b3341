// Each side writes only its own memory, which the other side maps read-only: a peer can lie, but
// not harm. Two tasks share memory if the caller reaches the listener's abstract Unix socket, not
// if their host names agree.
#include "net/shm/shm_link.h"

#include <utility>

#include "net/liveness_timer.h"
#include "net/shm/shm_acceptor.h"
#include "net/shm/shm_connection.h"
#include "net/shm/shm_handshake.h"
#include "paceline/error.h"

namespace paceline {
namespace {

Receiver* refuse_other_hosts(const std::shared_ptr<Connection>& connection) {
  throw Error(ErrorCode::kUnavailable,
              "--link shm: " + connection->peer() + " is no task of this host");
}

/// A listener that is about to end makes no offer either, so that the next try may find another.
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
  // A caller that is told of the offer before the acceptor starts waits at the socket.
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
