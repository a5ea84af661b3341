// Sends the frames at the front of a queue with one system call.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>

#include "net/queued_frame.h"

namespace paceline {

/// A gathered piece of a queue. Headers are copied, so that the queue may grow meanwhile; payloads
/// are not.
class FrameBatch {
 public:
  explicit FrameBatch(const QueuedFrame& frame);
  /// `done` bytes of the first frame were sent before. The batch has at most `most_bytes`.
  FrameBatch(const Ring<QueuedFrame>& queue, std::size_t done, std::size_t most_bytes);
  /// As send: bytes sent, or -1 and errno.
  std::ptrdiff_t send(int fd);
  std::size_t bytes() const { return bytes_; }

  static constexpr std::size_t kMostFrames = 32;

 private:
  using Header = std::array<std::byte, kFrameHeaderBytes>;

  void add(Header& header, const QueuedFrame& frame, std::size_t skip);
  void add(const void* data, std::size_t bytes, std::size_t& skip);
  std::ptrdiff_t send_gathered(int fd) const;

  std::array<Header, kMostFrames> headers_;
  std::array<iovec, 2 * kMostFrames> parts_;
  const std::size_t most_bytes_;
  std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace paceline
