// A control message of a job as a value: the state machines of protocol/ take and return such
// values. Values and contributions of variables travel in other frames. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "params/wire/collective_messages.h"
#include "params/wire/message.h"
#include "params/wire/record_messages.h"
#include "params/wire/round_messages.h"
#include "params/wire/save_messages.h"

namespace paceline {

/// A task's own state in the bytes of its messages (task_state.h). The bytes are shared, since they
/// may be many and go to several peers.
using StateBytes = std::shared_ptr<const std::vector<std::byte>>;

struct ControlMessage {
  /// The payload. The message's type determines which alternative the body has; monostate: no
  /// payload.
  using Body = std::variant<std::monostate, Hello, Welcome, Declare, Declared, StepDone, JobState,
                            Initialised, FindFile, SavedShard, RoundContribution, RoundDecision,
                            CommittedRound, BeginAgain, RoundSquares, RoundScale, RecordWish,
                            GivenRecords, std::int64_t, std::string, bool, StateBytes, GroupStatus,
                            Proposal, Agreement, Formation, CollectiveBegin, StepMark>;
  MessageType type{};
  Body body = {};
  /// The step in the frame's header: the number of a save, or a worker's own step.
  std::uint64_t step = 0;

  /// Returns the body as a T. Throws kDataLoss when messages of this type have another body.
  template <typename T>
  const T& as() const {
    if (const T* const found = std::get_if<T>(&body)) return *found;
    wrong_body();
  }

 private:
  [[noreturn]] void wrong_body() const;
};

/// True for the control messages that a worker, or another ps, sends to a ps.
bool is_control_for_ps(MessageType type);
/// True for the control messages that ps 0 sends to another ps.
bool is_control_from_coordinator(MessageType type);
/// True for the control messages that a ps sends to a worker.
bool is_control_for_worker(MessageType type);
/// True for the control messages between the workers of an all-reduce.
bool is_control_for_peer(MessageType type);
/// Decodes a control message of either side. Throws kDataLoss naming the message. A kTaskState
/// arrives in several frames; `payload` is all of them together.
ControlMessage decode_control(MessageType type, std::span<const std::byte> payload,
                              std::uint64_t step);
/// Encodes the payload. The payload of a task's state is empty: its bytes are sent without a copy
/// (for_state_frames).
std::vector<std::byte> encode(const ControlMessage& message);

}  // namespace paceline
