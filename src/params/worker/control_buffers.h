// Payloads of small messages, kept until they are sent.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

namespace paceline {

/// Grows to as many buffers as are on their way at once, then allocates no more. One thread takes;
/// any thread gives back.
class ControlBuffers {
 public:
  struct Buffer {
    std::vector<std::byte> bytes;
    std::atomic<bool> busy{false};
  };
  /// A buffer that is busy until sent() is called with it.
  Buffer& take() {
    for (Buffer& buffer : buffers_) {
      if (!buffer.busy.exchange(true)) return buffer;
    }
    Buffer& buffer = buffers_.emplace_back();
    buffer.busy = true;
    return buffer;
  }
  /// Returns a buffer for a message without payload.
  Buffer& take_empty() {
    Buffer& buffer = take();
    buffer.bytes.clear();
    return buffer;
  }
  /// To be given to Connection::send; the context is the buffer.
  static void sent(void* context) { static_cast<Buffer*>(context)->busy = false; }

 private:
  std::deque<Buffer> buffers_;
};

}  // namespace paceline
