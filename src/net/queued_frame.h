// A frame that waits to be sent.
#pragma once

#include <span>

#include "net/frame.h"
#include "net/ring.h"

namespace paceline {

/// The payload is borrowed until give_back.
struct QueuedFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  void (*sent)(void* context) = nullptr;
  void* context = nullptr;

  std::size_t bytes() const { return kFrameHeaderBytes + payload.size(); }
  void give_back() const {
    if (sent != nullptr) sent(context);
  }
};

inline void give_back_all(Ring<QueuedFrame>& frames) {
  while (!frames.empty()) frames.pop().give_back();
}

}  // namespace paceline
