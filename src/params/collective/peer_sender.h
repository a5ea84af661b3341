// Sends frames to other workers, by their index.
#pragma once

#include <cstddef>
#include <span>

#include "net/frame.h"

namespace paceline {

class PeerSender {
 public:
  virtual ~PeerSender() = default;
  /// Sends as Connection::send does. To a worker that is not connected nothing is sent, and `sent`
  /// is called.
  virtual void send(int worker, const FrameHeader& header, std::span<const std::byte> payload,
                    void (*sent)(void* context), void* context) = 0;
  /// Sends as Connection::send_copy does.
  virtual void send_copy(int worker, const FrameHeader& header,
                         std::span<const std::byte> payload) = 0;
};

}  // namespace paceline
