// What the connections of one link share, if a poller watches them.
#pragma once

#include <memory>

#include "net/connection_list.h"
#include "net/link.h"
#include "net/poll/poller.h"

namespace paceline {

/// The list of connections, and the values that all of them share. Thread-safe. A connection has a
/// method `tick` besides those that ConnectionList calls.
template <typename C>
class LinkConnections : public ConnectionList<C> {
 public:
  LinkConnections(std::shared_ptr<Poller> poller, const LinkOptions& options)
      : poller_(std::move(poller)), dead_after_(options.dead_after), spin_(options.spin) {}

  const std::shared_ptr<Poller>& poller() const { return poller_; }
  Duration dead_after() const { return dead_after_; }
  Duration spin() const { return spin_; }

  void tick() {
    this->for_each([](const std::shared_ptr<C>& one) { one->tick(); });
  }

 private:
  const std::shared_ptr<Poller> poller_;
  const Duration dead_after_, spin_;
};

}  // namespace paceline
