// A frame of a simulated job: a header, a size, and of a control message what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "params/wire/control_message.h"

namespace paceline {

/// The payload of a control message, about.
constexpr std::size_t kSimulatedControlBytes = 64;
/// A thread that handles frames turns to another connection after so many bytes.
constexpr std::size_t kSimulatedTurnBytes = 512 * 1024;

struct SimulatedFrame {
  MessageType type{};
  std::uint16_t flags = 0;
  std::uint32_t piece = 0;     // or a bucket
  std::size_t offset = 0;      // of float32 bytes
  std::size_t bytes = 0;       // of float32, which may travel as fewer
  std::size_t wire_bytes = 0;  // of the payload as it travels
  std::uint64_t step = 0;
  int messages = 1;  // that it stands for
  // The time on a core to make numbers of fewer bytes of float32 when it is sent, and to widen them
  // again when it arrives.
  double pack_s = 0, unpack_s = 0;
  std::shared_ptr<const ControlMessage> control = nullptr;
};

/// Takes what arrives on streams.
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  /// Frames of one stream, in their order; `from` names the stream as its receiver does.
  virtual void arrived(int from, std::vector<SimulatedFrame> frames) = 0;
};

}  // namespace paceline
