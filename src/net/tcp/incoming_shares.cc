#include "net/tcp/incoming_shares.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace paceline {
namespace {

// The least bound of a stream has room for ten packets: with fewer, packets would wait for one
// another. If the bound is below one packet, TCP sends nothing until a timer of 200 ms ends (silly
// window avoidance, RFC 9293, 3.8.6.2.1).
constexpr double kLeastBound = 16 << 10, kLeastPackets = 10;
// The fraction of a stream's recent bytes that still counts at the next call. So a worker that
// computes for a second, and sends nothing meanwhile, still counts.
constexpr double kFades = 0.8;
// If the streams count as fewer than this many, the busiest one has the link almost to itself.
constexpr double kAlone = 1.25;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// True if packets of the stream, or their acknowledgements, wait in queues: its round trip is
// longer than the shortest one.
bool waits(const TcpWay& way) {
  return way.round_trip - way.shortest_round_trip >= IncomingShares::kQueued / 4;
}

}  // namespace

// The bound follows the highest rate so far. A bound that followed the present rate could lower
// that rate again and again.
std::size_t IncomingShares::bound(std::span<IncomingStream* const> streams, Duration passed) {
  double brought = 0, busiest = 0, least = kLeastBound;
  for (IncomingStream* const stream : streams) {
    if (stream->within_host) continue;
    least = std::max(least, kLeastPackets * double(stream->way.longest_packet));
    const double bytes =
        double(stream->way.received - std::exchange(stream->received, stream->way.received));
    stream->recent = std::max(bytes, kFades * stream->recent);
    brought += bytes;
    busiest = std::max(busiest, stream->recent);
  }
  if (passed > Duration(0)) most_per_s_ = std::max(most_per_s_, brought / seconds(passed));
  // A stream with half the bytes of the busiest one counts as half a stream.
  double sharing = 0, waiting = 0;
  for (const IncomingStream* const stream : streams) {
    if (stream->within_host) continue;
    const double share = busiest > 0 ? stream->recent / busiest : 0;
    sharing += share;
    if (waits(stream->way)) waiting += share;
  }
  if (sharing < kAlone || waiting < sharing / 2) return 0;
  return std::size_t(std::max(least, most_per_s_ * seconds(kQueued) / sharing));
}

}  // namespace paceline
