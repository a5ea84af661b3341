#include "paceline/error.h"
#include "params/protocol/meeting.h"
#include "params/protocol/placement.h"
#include "params/wire/control_message.h"
#include "params/wire/message.h"
#include "probe/probe_desk.h"
#include "probe/probe_messages.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

bool is_control(MessageType type) {
  return is_control_for_ps(type) || is_control_from_coordinator(type) ||
         is_control_for_worker(type) || is_control_for_peer(type);
}

// Decodes a message other than the control messages.
void decode_data_message(MessageType type, std::span<const std::byte> payload) {
  StepBegin begin;
  StepEnd end;
  std::vector<std::uint32_t> pieces;
  std::vector<std::int32_t> rows;
  switch (type) {
    case MessageType::kStepBegin:
      decode_step_begin(payload, begin);
      break;
    case MessageType::kClip:
      decode_clip(payload);
      break;
    case MessageType::kStepEnd:
      decode_step_end(payload, end);
      break;
    case MessageType::kAttend:
      // On one host, a meeting reads this message before its sender has proved who it is.
      Meeting(4, 1, TimePoint()).attended(1, "", decode_attendance(payload), TimePoint());
      break;
    case MessageType::kRoster:
      decode_roster(payload);
      break;
    case MessageType::kPull:
      decode_pieces(payload, type, pieces);
      break;
    case MessageType::kPullRows:
      decode_rows(payload, type, rows);
      break;
    default:
      decode_number(payload, type);
  }
}

void decode_message(MessageType type, std::span<const std::byte> payload) {
  if (!is_control(type)) return decode_data_message(type, payload);
  const ControlMessage message = decode_control(type, payload, 0);
  if (type != MessageType::kDeclare) return;
  // An accepted message must be unchanged after it was written and read again.
  const Declare& declare = message.as<Declare>();
  if (decode_declare(encode(declare)).pieces != declare.pieces) __builtin_trap();
}

// Decodes a message from a caller of `paceline probe`, or a server's answer.
void decode_probe_message(ProbeType type, std::span<const std::byte> payload) {
  ProbeDesk desk;
  switch (type) {
    case ProbeType::kHello:
      // On one host, the desk reads this message before its sender has proved who it is.
      desk.called(1, TimePoint());
      desk.hello(1, decode_probe_hello(payload), TimePoint());
      break;
    case ProbeType::kRoof:
      decode_probe_roof(payload);
      break;
    case ProbeType::kMeasure:
      decode_probe_measure(payload);
      break;
    case ProbeType::kMeasured:
      decode_probe_measured(payload);
      break;
    case ProbeType::kFill:
      decode_milliseconds(payload);
      break;
    case ProbeType::kCount:
      decode_probe_count(payload);
      break;
    default:
      decode_probe_text(payload, type);
  }
}

}  // namespace

// The first byte is the message's type.
void fuzz_messages(Bytes bytes) {
  if (bytes.empty()) return;
  try {
    const auto payload = std::as_bytes(bytes.subspan(1));
    if (bytes[0] >= std::uint16_t(ProbeType::kHello)) {
      decode_probe_message(ProbeType{bytes[0]}, payload);
    } else {
      decode_message(MessageType{bytes[0]}, payload);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
