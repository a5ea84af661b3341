// A frame that waits to be sent.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/ring.h"
#include "net/frame.h"
#include "net/memory/shared_memory.h"

namespace paceline {

/// The payload is borrowed until give_back, or until keep_payload.
struct QueuedFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  void (*sent)(void* context) = nullptr;
  void* context = nullptr;
  /// When set, no frame: memory that is shared under the header's id.
  std::shared_ptr<const SharedMemory> shared = nullptr;
  /// The payload is lent by a call that has not returned: what waits must be kept.
  bool lent_by_call = false;

  std::size_t bytes() const { return kFrameHeaderBytes + payload.size(); }
  void give_back() const {
    if (sent != nullptr) sent(context);
  }
  /// Goes on with a copy of its own.
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
