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
  /// If it is set, no frame is sent; instead, this memory is shared under the header's id.
  std::shared_ptr<const SharedMemory> shared = nullptr;
  /// True if a call that has not returned lends the payload: if the frame must wait, its payload
  /// must be copied.
  bool lent_by_call = false;

  /// Returns how many bytes the frame takes on a link that adds `framing_bytes` to each payload.
  std::size_t bytes(std::size_t framing_bytes) const { return framing_bytes + payload.size(); }
  void give_back() const {
    if (sent != nullptr) sent(context);
  }
  /// Copies the payload, and continues with the copy.
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
