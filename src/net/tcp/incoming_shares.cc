#include "net/tcp/incoming_shares.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace paceline {
namespace {

// Some ten packets: fewer would wait for one another.
constexpr double kLeastBound = 16 << 10;
// A worker that computes for a second sends nothing meanwhile, and yet counts.
constexpr double kFades = 0.8;
// A stream that brings a smaller part than this of what the busiest one brings has no share.
constexpr double kCounts = 1.0 / 16;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// The round trip of a stream tells how long its packets, or those that confirm them, wait in
// queues.
bool waits(const TcpWay& way) {
  return way.round_trip - way.shortest_round_trip >= IncomingShares::kQueued / 4;
}

}  // namespace

// The rate is the highest ever: a bound that follows the present one could lower it again and
// again.
std::size_t IncomingShares::bound(std::span<IncomingStream* const> streams, Duration passed) {
  double brought = 0, busiest = 0;
  for (IncomingStream* const stream : streams) {
    const double bytes =
        double(stream->way.received - std::exchange(stream->received, stream->way.received));
    stream->recent = std::max(bytes, kFades * stream->recent);
    brought += bytes;
    busiest = std::max(busiest, stream->recent);
  }
  if (passed > Duration(0)) most_per_s_ = std::max(most_per_s_, brought / seconds(passed));
  std::size_t sharing = 0, waiting = 0;
  for (const IncomingStream* const stream : streams) {
    if (stream->recent <= kCounts * busiest) continue;
    ++sharing;
    if (waits(stream->way)) ++waiting;
  }
  if (sharing < 2 || 2 * waiting < sharing) return 0;
  return std::size_t(std::max(kLeastBound, most_per_s_ * seconds(kQueued) / double(sharing)));
}

}  // namespace paceline
