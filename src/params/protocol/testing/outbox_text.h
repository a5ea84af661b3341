// An outbox as lines that a test can compare: "connect 0", "3 welcome", "close 3".
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "params/protocol/outbox.h"

namespace paceline {

inline std::string text_of(const Outbox::Action& action) {
  if (const auto* it = std::get_if<Outbox::Send>(&action)) {
    return std::to_string(it->to) + " " + name_of(it->message.type);
  }
  if (const auto* it = std::get_if<Outbox::ShareValues>(&action)) {
    return std::to_string(it->to) + " shares";
  }
  if (const auto* it = std::get_if<Outbox::Close>(&action)) {
    return "close " + std::to_string(it->peer);
  }
  if (const auto* it = std::get_if<Outbox::Connect>(&action)) {
    return "connect " + std::to_string(it->peer);
  }
  if (const auto* it = std::get_if<Outbox::Line>(&action)) {
    const std::string about = it->about == Outbox::kNobody ? "" : std::to_string(it->about);
    return (it->warning ? "warn " : "say ") + it->before + about + it->after;
  }
  if (const auto* it = std::get_if<Outbox::Attach>(&action)) {
    return std::to_string(it->from) + " is " + std::to_string(it->to);
  }
  if (const auto* it = std::get_if<Outbox::GoOn>(&action)) {
    return std::to_string(it->peer) + " goes on at " + std::to_string(it->handled);
  }
  if (const auto* it = std::get_if<Outbox::Forget>(&action)) {
    return "forget " + std::to_string(it->peer);
  }
  if (const auto* it = std::get_if<Outbox::Decide>(&action)) {
    return (it->decision.closes ? "close round " : "drop in round ") +
           std::to_string(it->decision.round);
  }
  if (std::holds_alternative<Outbox::Clip>(action)) return "clip";
  if (std::holds_alternative<Outbox::Find>(action)) return "find";
  if (std::holds_alternative<Outbox::Mark>(action)) return "mark";
  return "save";
}

/// Empties the outbox and returns its actions as lines of text.
inline std::vector<std::string> take_text(Outbox& out) {
  std::vector<std::string> lines;
  for (const Outbox::Action& action : std::exchange(out.actions(), {})) {
    lines.push_back(text_of(action));
  }
  return lines;
}

/// Returns the last message in the outbox whose body is a T.
template <typename T>
T sent(Outbox& out) {
  for (std::size_t i = out.actions().size(); i-- > 0;) {
    const auto* it = std::get_if<Outbox::Send>(&out.actions()[i]);
    if (it == nullptr) continue;
    if (const T* body = std::get_if<T>(&it->message.body)) return *body;
  }
  throw std::logic_error("no such message was sent");
}

}  // namespace paceline
