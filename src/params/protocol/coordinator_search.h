// How a ps other than ps 0 finds ps 0, and finds it again.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "params/protocol/outbox.h"

namespace paceline {

/// How a ps connects to ps 0, which decides about rounds, and connects again after the connection
/// was lost. A plain state machine: events and their times go in, an outbox comes out, whose only
/// peer is Outbox::kCoordinator. It tries without end, since no worker of the job goes on without
/// ps 0, and stops only when ps 0 was restarted or refuses this ps.
class CoordinatorSearch {
 public:
  /// `hello` says who this ps is.
  CoordinatorSearch(Hello hello, TimePoint now);

  /// Does what is due by now. Returns the latest time for the next call.
  TimePoint tick(TimePoint now, Outbox& out);
  // The answers to Outbox::Connect.
  void connected(Outbox& out);
  void connect_failed(const std::string& why, TimePoint now);
  /// Takes the answer to the hello: kWelcome, kRefuse, kBusy or kRestarted.
  void received(const ControlMessage& message, TimePoint now, Outbox& out);
  /// The connection has ended. `handled` is the number of numbered messages of ps 0 that this ps
  /// has handled, on all connections.
  void closed(std::uint64_t handled, TimePoint now);

 private:
  enum class Phase : std::uint8_t { kApart, kConnecting, kGreeted, kWelcomed, kOver };
  void try_again(TimePoint now);

  Hello hello_;
  Phase phase_ = Phase::kApart;
  TimePoint try_at_, apart_since_;
  std::string why_;    // why the last try failed
  bool told_ = false;  // the user was told that this ps has no connection with ps 0
};

}  // namespace paceline
