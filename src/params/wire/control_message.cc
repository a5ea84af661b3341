#include "params/wire/control_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace paceline {
namespace {

// Decodes the messages of collective_messages.h. A message of any other type has no payload.
ControlMessage::Body decode_group_body(MessageType type, std::span<const std::byte> payload) {
  switch (type) {
    case MessageType::kGroupStatus:
      return decode_group_status(payload);
    case MessageType::kPropose:
      return decode_proposal(payload);
    case MessageType::kAgree:
      return decode_agreement(payload);
    case MessageType::kForm:
      return decode_formation(payload);
    case MessageType::kCollectiveBegin:
      return decode_collective_begin(payload);
    case MessageType::kSumsWhole:
      return decode_step_mark(payload, "sums_whole");
    case MessageType::kCommit:
      return decode_step_mark(payload, "commit");
    default:
      return std::monostate();
  }
}

ControlMessage::Body decode_body(MessageType type, std::span<const std::byte> payload) {
  switch (type) {
    case MessageType::kHello:
      return decode_hello(payload);
    case MessageType::kWelcome:
      return decode_welcome(payload);
    case MessageType::kDeclare:
      return decode_declare(payload);
    case MessageType::kStepDone:
      return decode_step_done(payload);
    case MessageType::kJobState:
      return decode_job_state(payload);
    case MessageType::kInitialised:
      return decode_initialised(payload);
    case MessageType::kFindFile:
      return decode_find_file(payload);
    case MessageType::kSaved:
      return decode_saved_shard(payload);
    case MessageType::kWriteEnd:
    case MessageType::kStepLimit:
    case MessageType::kReadsRecords:
      return decode_number(payload, type);
    case MessageType::kAskRecords:
      return decode_record_wish(payload);
    case MessageType::kRecords:
      return decode_given_records(payload);
    case MessageType::kRefuse:
    case MessageType::kBusy:
    case MessageType::kSaveShard:
    case MessageType::kProgress:
      return decode_text(payload, type);
    case MessageType::kDeclared:
      return decode_declared(payload);
    case MessageType::kWhole:
      return decode_round_contribution(payload);
    case MessageType::kDecided:
      return decode_round_decision(payload);
    case MessageType::kCommitted:
      return decode_committed_round(payload);
    case MessageType::kBeginAgain:
      return decode_begin_again(payload);
    case MessageType::kSquares:
      return decode_round_squares(payload);
    case MessageType::kScale:
      return decode_round_scale(payload);
    case MessageType::kFoundFile:
      return !payload.empty() && payload[0] == std::byte{1};
    case MessageType::kTaskState:
      return std::make_shared<const std::vector<std::byte>>(payload.begin(), payload.end());
    default:
      return decode_group_body(type, payload);
  }
}

}  // namespace

void ControlMessage::wrong_body() const {
  throw Error(ErrorCode::kDataLoss, fmt::format("{} has another payload", name_of(type)));
}

bool is_control_for_ps(MessageType type) {
  constexpr std::array kTypes = {
      MessageType::kHello,       MessageType::kDeclare,      MessageType::kWriteEnd,
      MessageType::kFindFile,    MessageType::kMark,         MessageType::kSaveShard,
      MessageType::kTaskState,   MessageType::kDone,         MessageType::kGoodbye,
      MessageType::kEndTraining, MessageType::kBeginAgain,   MessageType::kWhole,
      MessageType::kSquares,     MessageType::kAskProgress,  MessageType::kProgress,
      MessageType::kAskRecords,  MessageType::kReadsRecords, MessageType::kCommitted,
      MessageType::kWithdraw,    MessageType::kRoundOpen};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

bool is_control_from_coordinator(MessageType type) {
  constexpr std::array kTypes = {MessageType::kWelcome, MessageType::kRefuse,
                                 MessageType::kBusy,    MessageType::kRestarted,
                                 MessageType::kDecided, MessageType::kScale};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

bool is_control_for_worker(MessageType type) {
  constexpr std::array kTypes = {
      MessageType::kWelcome,     MessageType::kRefuse,    MessageType::kDeclared,
      MessageType::kWritten,     MessageType::kStepDone,  MessageType::kStepLimit,
      MessageType::kInitialised, MessageType::kJobState,  MessageType::kFoundFile,
      MessageType::kSaved,       MessageType::kAskState,  MessageType::kTaskState,
      MessageType::kStop,        MessageType::kBusy,      MessageType::kRestarted,
      MessageType::kAskProgress, MessageType::kProgress,  MessageType::kRecords,
      MessageType::kGiven,       MessageType::kRoundOpen, MessageType::kScale};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

bool is_control_for_peer(MessageType type) {
  constexpr std::array kTypes = {
      MessageType::kHello,       MessageType::kWelcome,         MessageType::kRefuse,
      MessageType::kAskState,    MessageType::kTaskState,       MessageType::kGroupStatus,
      MessageType::kPropose,     MessageType::kAgree,           MessageType::kForm,
      MessageType::kCommit,      MessageType::kCollectiveBegin, MessageType::kSumsWhole,
      MessageType::kAskProgress, MessageType::kProgress};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

ControlMessage decode_control(MessageType type, std::span<const std::byte> payload,
                              std::uint64_t step) {
  return {type, decode_body(type, payload), step};
}

std::vector<std::byte> encode(const ControlMessage& message) {
  return std::visit(
      [](const auto& body) -> std::vector<std::byte> {
        using Body = std::remove_cvref_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, std::monostate> || std::is_same_v<Body, StateBytes>) {
          return {};
        } else if constexpr (std::is_same_v<Body, bool>) {
          return {std::byte(body ? 1 : 0)};
        } else if constexpr (std::is_same_v<Body, std::int64_t>) {
          const auto bytes = encode_number(body);
          return {bytes.begin(), bytes.end()};
        } else if constexpr (std::is_same_v<Body, std::string>) {
          return encode_text(body);
        } else if constexpr (std::is_same_v<Body, StepDone>) {
          const auto bytes = encode(body);
          return {bytes.begin(), bytes.end()};
        } else {
          return encode(body);
        }
      },
      message.body);
}

}  // namespace paceline
