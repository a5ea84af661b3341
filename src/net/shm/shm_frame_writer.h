// Writes the frames of a queue into a ring, as far as there is room.
#pragma once

#include "net/queued_frame.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_sleep.h"
#include "net/shm/shm_socket.h"

namespace paceline {

/// One thread at a time uses it, except for may_go_on.
class ShmFrameWriter {
 public:
  ShmFrameWriter(const ShmPair& pair, const ShmReader& reader, ShmSleep& sleep, ShmSocket& socket)
      : ring_(pair, reader), sleep_(sleep), socket_(socket) {}

  /// Writes the whole frame, or nothing and returns false when there is no room for it now. Throws
  /// what ShmWriter::room throws.
  bool write_whole(const QueuedFrame& frame);
  /// Goes on with a frame of which `done` bytes were written before. Returns the bytes that were
  /// written now, at most `most_bytes` or a header; 0 when the writer must wait. Throws
  /// kUnavailable when a descriptor cannot be passed, and what ShmWriter::room throws.
  std::size_t write_some(const QueuedFrame& frame, std::size_t done, std::size_t most_bytes);
  /// Returns true when it is time to try again after a 0. Any thread may ask.
  bool may_go_on() const { return ring_.is_read(goal_.load(std::memory_order_relaxed)); }

 private:
  bool write_short(const QueuedFrame& frame);
  bool pass(const QueuedFrame& frame);
  std::size_t write_piece(std::span<const std::byte> bytes);
  std::size_t wait_for_room();
  void publish();

  ShmWriter ring_;
  ShmSleep& sleep_;
  ShmSocket& socket_;
  std::atomic<std::uint64_t> goal_{0};  // the peer must have read so far before more is written
  Ring<std::uint64_t> passed_;  // by descriptor: the peer has taken it when it has read so far
};

}  // namespace paceline
