#include "train/copies_at_once.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "base/deadline.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using MessageKind = CopiesMessage::Kind;

constexpr std::size_t kMostCopiesBytes = 128 * 1024;
constexpr std::array<std::pair<MessageKind, std::string_view>, 6> kKindWords = {
    {{MessageKind::kAsk, "copies"},
     {MessageKind::kReady, "ready"},
     {MessageKind::kGo, "go"},
     {MessageKind::kPace, "pace"},
     {MessageKind::kPaces, "paces"},
     {MessageKind::kWhy, "why"}}};

FileDescriptor connected_to(const std::string& name) {
  constexpr auto kPatience = std::chrono::seconds(10);
  std::optional<FileDescriptor> socket = dial_abstract(name, Deadline::after(kPatience));
  if (socket && is_of_this_user(socket->get())) return std::move(*socket);
  throw Error(ErrorCode::kUnavailable,
              "[predict] the `paceline predict` that has started this process has ended");
}

}  // namespace

std::string text_of(const CopiesMessage& message) {
  std::string text;
  for (const auto& [kind, word] : kKindWords) {
    if (kind == message.kind) text = word;
  }
  if (message.number > 0) text += fmt::format(" {}", message.number);
  for (const StepPace& pace : message.paces) {
    text += fmt::format(" {} {}", pace.seconds, pace.busy_cores);
  }
  return message.why.empty() ? text : text + " " + message.why;
}

std::optional<CopiesMessage> copies_message_of(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  std::istringstream rest(std::string(text.substr(std::min(text.size(), word.size() + 1))));
  CopiesMessage message;
  bool known = false;
  for (const auto& [kind, name] : kKindWords) {
    if (name != word) continue;
    message.kind = kind;
    known = true;
  }
  if (!known) return std::nullopt;
  switch (message.kind) {
    case MessageKind::kAsk:
    case MessageKind::kReady:
      if (!(rest >> message.number) || message.number < 1) return std::nullopt;
      break;
    case MessageKind::kPace:
    case MessageKind::kPaces:
      for (StepPace pace; rest >> pace.seconds >> pace.busy_cores;) message.paces.push_back(pace);
      if (message.paces.empty()) return std::nullopt;
      break;
    case MessageKind::kWhy:
      message.why = rest.str();
      break;
    case MessageKind::kGo:
      break;
  }
  return message;
}

std::optional<CopiesMessage> copies_message_at_hand(int socket, bool& ended) {
  const UnixMessage received = receive_message(socket, kMostCopiesBytes);
  if (received.outcome == UnixMessage::Outcome::kNothing) return std::nullopt;
  std::optional<CopiesMessage> message;
  if (received.outcome == UnixMessage::Outcome::kMessage) {
    message = copies_message_of(received.text);
  }
  ended = !message;
  return message;
}

std::optional<CopiesMessage> next_copies_message(int socket) {
  for (bool ended = false; !ended;) {
    pollfd readable{socket, POLLIN, 0};
    poll(&readable, 1, -1);
    if (auto message = copies_message_at_hand(socket, ended)) return message;
  }
  return std::nullopt;
}

CopyAmongOthers::CopyAmongOthers(const std::string& gate)
    : socket_(connected_to(gate.substr(0, gate.rfind('/')))),
      number_(std::atoi(gate.c_str() + gate.rfind('/') + 1)) {}

bool CopyAmongOthers::wait_for_others() {
  send_message(socket_.get(), text_of({.kind = MessageKind::kReady, .number = number_}), -1);
  const auto message = next_copies_message(socket_.get());
  return message && message->kind == MessageKind::kGo;
}

void CopyAmongOthers::tell(const StepPace& pace) {
  send_message(socket_.get(), text_of({.kind = MessageKind::kPace, .paces = {pace}}), -1);
}

bool CopyAmongOthers::is_over() const {
  bool ended = false;
  copies_message_at_hand(socket_.get(), ended);
  return ended;
}

CopiesAnswer run_copies(const std::string& name, int copies) {
  const FileDescriptor socket = connected_to(name);
  send_message(socket.get(), text_of({.kind = MessageKind::kAsk, .number = copies}), -1);
  std::optional<CopiesMessage> answer = next_copies_message(socket.get());
  if (!answer) {
    throw Error(ErrorCode::kCancelled, "[predict] interrupted while copies of the command ran");
  }
  return {std::move(answer->paces), std::move(answer->why)};
}

}  // namespace paceline
