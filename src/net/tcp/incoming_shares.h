// Divides a full link evenly among its incoming streams. It is a plain state machine: it gets what
// the system has measured, and says how much of each stream may be under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/tcp/tcp_socket.h"

namespace paceline {

/// A stream to this host, and the state that IncomingShares keeps about it.
struct IncomingStream {
  TcpWay way = {};             // as measured now
  bool within_host = false;    // comes from a task of this host, over no link
  std::uint64_t received = 0;  // bytes received by the last call
  double recent = 0;           // most bytes between two calls; decays
};

/// Several streams whose packets wait in one queue share the link in proportion to their bytes in
/// the queue. TCP lets each stream queue more until the queue is full and a packet is lost, so that
/// chance decides the shares for many seconds. If the receiver bounds all streams alike, the queue
/// never fills and the shares are even.
///
/// All bounds together equal what the link brings in `kQueued`: enough to keep the link busy, and
/// more than a short path holds at once. A stream that sends less than its share is not slowed
/// down, and the others take the rest.
class IncomingShares {
 public:
  /// The bounds allow a queue that takes the link this long to send.
  static constexpr Duration kQueued = std::chrono::milliseconds(12);

  /// Returns how many bytes of each stream over a short path may be under way at once. 0: no bound,
  /// because no link is full, or because one stream alone uses it. Streams within this host do not
  /// count, and need no bound: a task that waits for a core, and not a queue, makes their round
  /// trips long. A bound has room for ten packets of every stream. Call it a few times a second;
  /// `passed` is the time since the last call.
  std::size_t bound(std::span<IncomingStream* const> streams, Duration passed);

 private:
  double most_per_s_ = 0;  // bytes a second: the highest rate of all streams together
};

}  // namespace paceline
