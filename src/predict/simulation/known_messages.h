// The part of the protocol that the simulator knows. An addition to the protocol does not compile
// here, or fails a test, until somebody has decided what the addition costs.
#pragma once

#include <concepts>

#include "params/protocol/outbox.h"
#include "params/wire/message.h"

namespace paceline {

/// How the simulator treats a message.
enum class Simulated : std::uint8_t {
  kDriven,          // the state machines send and handle it, and its bytes take time
  kNotInASteadyRun  // a message for joining late, saving or coming back, which no step waits for
};
Simulated simulated_as(MessageType type);

/// The actions of an Outbox that take no step time.
struct NotInASteadyRun {
  template <typename Action>
  requires std::same_as<Action, Outbox::ShareValues> || std::same_as<Action, Outbox::Close> ||
      std::same_as<Action, Outbox::Line> || std::same_as<Action, Outbox::Find> ||
      std::same_as<Action, Outbox::Mark> || std::same_as<Action, Outbox::Save> ||
      std::same_as<Action, Outbox::Attach> || std::same_as<Action, Outbox::GoOn> ||
      std::same_as<Action, Outbox::Forget>
      NotInASteadyRun(const Action&) {}
};

/// Joins several functions to one, for std::visit.
template <typename... Functions>
struct OutboxActions : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
OutboxActions(Functions...) -> OutboxActions<Functions...>;

}  // namespace paceline
