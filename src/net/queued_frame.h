// A frame that waits to be sent.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ring.h"
#include "net/frame.h"
#include "net/memory/shared_memory.h"

namespace paceline {

/// A frame whose payload is borrowed until give_back, or until keep_payload.
struct QueuedFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  void (*sent)(void* context) = nullptr;
  void* context = nullptr;
  /// If this is set, no frame is sent. Instead, this memory is shared under the header's id.
  std::shared_ptr<const SharedMemory> shared = nullptr;
  /// True if the payload is lent only until the call of send_copy returns. A frame that must wait
  /// longer needs a copy of its payload.
  bool lent_by_call = false;

  /// Returns how many bytes the frame takes on a link that adds `framing_bytes` to each payload.
  std::size_t bytes(std::size_t framing_bytes) const { return framing_bytes + payload.size(); }
  void give_back() const {
    if (sent != nullptr) sent(context);
  }
  /// Copies the payload, and uses the copy from then on.
  void keep_payload() {
    using Kept = std::vector<std::byte>;
    auto kept = std::make_unique<Kept>(payload.begin(), payload.end());
    payload = *kept;
    sent = [](void* bytes) { delete static_cast<Kept*>(bytes); };
    context = kept.release();
    lent_by_call = false;
  }
};

inline void give_back_all(Ring<QueuedFrame>& frames) {
  while (!frames.empty()) frames.pop().give_back();
}

}  // namespace paceline
