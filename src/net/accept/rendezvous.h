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

/// Publishes offers of shared memory, and asks other tasks for theirs.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Listens at `address`. A caller that asks for shared memory gets `offer`; a caller that
  /// connects without asking for it goes to `others`. Returns the address that peers can use.
  /// Throws as Link::listen does.
  virtual std::string publish(const std::string& address, const Offer& offer, Acceptor others) = 0;
  /// Returns the offer of the listener at `address`; nullopt if the listener shares no memory.
  /// Throws as Link::connect does.
  virtual std::optional<Offer> ask_for_offer(const std::string& address, Deadline deadline) = 0;
  /// Returns the poller that watches the sockets over which tasks announce shared memory.
  virtual const std::shared_ptr<Poller>& poller() const = 0;
};

}  // namespace paceline
