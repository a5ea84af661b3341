#include "paceline/error.h"
#include "params/protocol/meeting.h"
#include "params/protocol/placement.h"
#include "params/wire/control_message.h"
#include "params/wire/message.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

void decode_message(MessageType type, std::span<const std::byte> payload) {
  StepBegin begin;
  StepEnd end;
  std::vector<std::uint32_t> pieces;
  std::vector<std::int32_t> rows;
  switch (type) {
    case MessageType::kHello:
      decode_hello(payload);
      break;
    case MessageType::kWelcome:
      decode_welcome(payload);
      break;
    case MessageType::kDeclare: {
      const Declare declare = decode_declare(payload);
      // An accepted message is the same after it was written and read again.
      if (decode_declare(encode(declare)).pieces != declare.pieces) __builtin_trap();
      break;
    }
    case MessageType::kJobState:
      decode_job_state(payload);
      break;
    case MessageType::kStepBegin:
      decode_step_begin(payload, begin);
      break;
    case MessageType::kStepDone:
      decode_step_done(payload);
      break;
    case MessageType::kClip:
      decode_clip(payload);
      break;
    case MessageType::kStepEnd:
      decode_step_end(payload, end);
      break;
    case MessageType::kAttend:
      // It is heard before anybody has proved who it is, on one host.
      Meeting(4, 1, TimePoint()).attended(1, "", decode_attendance(payload), TimePoint());
      break;
    case MessageType::kRoster:
      decode_roster(payload);
      break;
    case MessageType::kRefuse:
      decode_text(payload, type);
      break;
    case MessageType::kPull:
      decode_pieces(payload, type, pieces);
      break;
    case MessageType::kPullRows:
      decode_rows(payload, type, rows);
      break;
    case MessageType::kGroupStatus:
    case MessageType::kPropose:
    case MessageType::kAgree:
    case MessageType::kForm:
    case MessageType::kCollectiveBegin:
    case MessageType::kSumsWhole:
    case MessageType::kCommit:
    case MessageType::kAskRecords:
    case MessageType::kRecords:
      decode_control(type, payload, 0);
      break;
    default:
      decode_number(payload, type);
  }
}

}  // namespace

// The first byte is the message's type.
void fuzz_messages(Bytes bytes) {
  if (bytes.empty()) return;
  try {
    decode_message(MessageType{bytes[0]}, std::as_bytes(bytes.subspan(1)));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
