// The way of a ps to ps 0, which decides about rounds: how it is found, greeted and found again. A
// plain state machine: events and their times go in, an outbox comes out.
#pragma once

#include <cstdint>
#include <string>

#include "params/protocol/outbox.h"

namespace paceline {

/// The peer of the outbox is Outbox::kCoordinator. It looks for ps 0 for as long as it is asked to:
/// without ps 0 no worker of the job goes on either.
class CoordinatorSearch {
 public:
  /// `hello` says who this ps is.
  CoordinatorSearch(Hello hello, TimePoint now);

  /// Does what time alone brings about. Returns when to call again at the latest.
  TimePoint tick(TimePoint now, Outbox& out);
  // The answers to Outbox::Connect.
  void connected(Outbox& out);
  void connect_failed(const std::string& why, TimePoint now);
  /// Takes the answer to the hello: kWelcome, kRefuse, kBusy or kRestarted.
  void received(const ControlMessage& message, TimePoint now, Outbox& out);
  /// The connection has ended; so many numbered messages of ps 0 were handled on all of them.
  void closed(std::uint64_t handled, TimePoint now);

 private:
  enum class Phase : std::uint8_t { kApart, kConnecting, kGreeted, kWelcomed, kOver };
  void try_again(TimePoint now);

  Hello hello_;
  Phase phase_ = Phase::kApart;
  TimePoint try_at_, apart_since_;
  std::string why_;    // the last try failed
  bool told_ = false;  // the user, that it is apart
};

}  // namespace paceline
