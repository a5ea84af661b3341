// Tasks that can share memory find each other through an address at which one of them listens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "net/accept/offer.h"
#include "net/link.h"
#include "net/poll/poller.h"

namespace paceline {

/// Publishes offers of shared memory, and asks for those of others.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Listens at `address`. A caller that asks for shared memory is told `offer`; one that connects
  /// without it is given to `others`. Returns the address that peers can use. Throws what
  /// Link::listen throws.
  virtual std::string publish(const std::string& address, const Offer& offer, Acceptor others) = 0;
  /// The offer of the listener at `address`; none when it shares no memory. Throws what
  /// Link::connect throws.
  virtual std::optional<Offer> ask_for_offer(const std::string& address, Deadline deadline) = 0;
  /// Watches the sockets over which tasks say that they share memory.
  virtual const std::shared_ptr<Poller>& poller() const = 0;
};

}  // namespace paceline
