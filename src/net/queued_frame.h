// A frame that waits to be sent.
#pragma once

#include <memory>
#include <span>

#include "net/frame.h"
#include "net/ring.h"
#include "net/shared_memory.h"

namespace paceline {

/// The payload is borrowed until give_back.
struct QueuedFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  void (*sent)(void* context) = nullptr;
  void* context = nullptr;
  /// When set, no frame: memory that is shared under the header's id.
  std::shared_ptr<const SharedMemory> shared = nullptr;

  std::size_t bytes() const { return kFrameHeaderBytes + payload.size(); }
  void give_back() const {
    if (sent != nullptr) sent(context);
  }
};

inline void give_back_all(Ring<QueuedFrame>& frames) {
  while (!frames.empty()) frames.pop().give_back();
}

}  // namespace paceline
