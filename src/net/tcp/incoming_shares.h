// Divides a full link evenly among the streams that arrive over it. A plain state machine: what the
// system has measured goes in, and it says how much of each stream may be under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/tcp/tcp_socket.h"

namespace paceline {

/// A stream to this host, and what IncomingShares keeps about it.
struct IncomingStream {
  TcpWay way = {};             // as measured now
  std::uint64_t received = 0;  // bytes, when it was last looked at
  double recent = 0;           // bytes, the most between two looks, less with each look since
};

/// Streams that pass one queue share its link in proportion to what each has in it. TCP lets each
/// stream have more there until the queue is full and a packet is lost, so that the shares are left
/// to chance, for many seconds. If the receiver bounds all streams alike, the queue never fills and
/// the shares are even. All bounds together are what the link brings in `kQueued`: enough that it
/// never rests, and more than goes over a short way at once. A stream that sends less than its
/// share is not slowed down, and the others take what it leaves.
class IncomingShares {
 public:
  /// The bounds let so much of a link's time wait in its queue.
  static constexpr Duration kQueued = std::chrono::milliseconds(12);

  /// Returns the bytes of each stream over a short way that may be under way at once; 0: no bound,
  /// since no link is full, or there is nothing to divide. It is to be called a few times a second;
  /// `passed` is the time since the last call.
  std::size_t bound(std::span<IncomingStream* const> streams, Duration passed);

 private:
  double most_per_s_ = 0;  // bytes, over all streams, ever
};

}  // namespace paceline
