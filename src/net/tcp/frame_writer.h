// Sends the frames at the front of a queue with one system call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/queued_frame.h"
#include "net/stream/byte_stream.h"
#include "net/tcp/tcp_header.h"

namespace paceline {

/// The checksum so far of a payload that leaves piece by piece.
struct ChecksumSoFar {
  std::size_t bytes = 0;
  std::uint32_t checksum = 0;
};

/// The part of a queue that one system call sends. It copies headers and borrows payloads, so that
/// the queue may grow meanwhile. A frame of more than kAloneBytes stands first in its batch, so
/// that no long part of it is checksummed twice.
class FrameBatch {
 public:
  explicit FrameBatch(const QueuedFrame& frame);
  /// `done` bytes of the first frame were sent before. The batch has at most `most_bytes`.
  FrameBatch(const Ring<QueuedFrame>& queue, std::size_t done, std::size_t most_bytes);
  FrameBatch(const FrameBatch&) = delete;
  FrameBatch& operator=(const FrameBatch&) = delete;
  /// Computes the checksums of the batch's payload bytes. Call it before send, unless the stream
  /// checks bytes by itself; the checksums are then 0. `first` is the checksum so far of the first
  /// frame, which may continue from batch to batch. If there is much to send, do not call it under
  /// a lock.
  void take_checksums(ChecksumSoFar& first);
  /// Sends as ByteStream::write does.
  std::ptrdiff_t send(ByteStream& stream) const;
  std::size_t bytes() const { return bytes_; }

  static constexpr std::size_t kMostFrames = 32;
  static constexpr std::size_t kAloneBytes = 64 << 10;

 private:
  struct Payload {
    const std::byte* data;
    /// The payload's bytes from this position on are not in the batch.
    std::size_t end;
  };

  void add(const QueuedFrame& frame, std::size_t skip);
  std::size_t add(const void* data, std::size_t bytes, std::size_t& skip);

  std::array<TcpHeaderBytes, kMostFrames> headers_;
  std::array<Payload, kMostFrames> payloads_;
  std::array<std::uint32_t, kMostFrames> trailers_{};
  std::size_t frames_ = 0;
  std::array<iovec, 3 * kMostFrames> parts_;
  const std::size_t most_bytes_;
  std::size_t count_ = 0, bytes_ = 0;
};

}  // namespace paceline
