// A frame of a simulated job: a header and a size; for a control message also its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "params/wire/control_message.h"

namespace paceline {

/// The approximate payload of a control message.
constexpr std::size_t kSimulatedControlBytes = 64;
/// A thread that handles frames turns to another connection after this many bytes.
constexpr std::size_t kSimulatedTurnBytes = 512 * 1024;

struct SimulatedFrame {
  MessageType type{};
  std::uint16_t flags = 0;
  std::uint32_t piece = 0;     // the piece, or a bucket
  std::size_t offset = 0;      // counted in float32 bytes
  std::size_t bytes = 0;       // as float32; fewer may travel
  std::size_t wire_bytes = 0;  // of the payload on the wire
  std::uint64_t step = 0;
  int messages = 1;  // the number of messages it stands for
  // True if the thread that makes the step has already spent the time of the call that sends it.
  bool handed_over = false;
  // The core time to pack float32 into fewer bytes before sending, and to widen it again on
  // arrival.
  double pack_s = 0, unpack_s = 0;
  std::shared_ptr<const ControlMessage> control = nullptr;
};

/// Takes frames that arrive on streams.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  /// Receives frames of one stream, in order; `from` is the receiver's own name for the stream.
  virtual void arrived(int from, std::vector<SimulatedFrame> frames) = 0;
};

}  // namespace paceline
