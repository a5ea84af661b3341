#include "net/tcp/incoming_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace paceline {
namespace {

using namespace std::chrono_literals;

/// Workers that compute and then send, in turn, over one link. The link's queue gives each stream a
/// share in proportion to its bytes there. Losses have left the streams with different windows.
class FullLink {
 public:
  struct Worker {
    double window = 0;        // bytes; what its losses left
    double most_per_s = 1e9;  // bytes that it makes in a second, or that its own link carries
    Duration rests = 0s;      // pause between two steps
  };
  static constexpr double kBytesPerS = 117e6, kStepBytes = 7e6;
  static constexpr Duration kTurn = 1ms, kBetweenCalls = 250ms;

  explicit FullLink(const std::vector<Worker>& workers, Duration delay = 100us)
      : delay_(std::chrono::duration<double>(delay).count()) {
    for (const Worker& worker : workers) streams_.push_back({.worker = worker});
  }

  /// Returns the steps that each worker makes in `time` seconds.
  std::vector<double> steps(int time, bool divided) {
    IncomingShares shares;
    for (Stream& stream : streams_) stream.steps = 0;
    double bound = 0;
    for (Duration now = 0s; now < std::chrono::seconds(time); now += kTurn) {
      if (divided && now % kBetweenCalls == 0s) bound = bound_of(shares);
      turn(bound);
    }
    bound_ = bound;
    std::vector<double> made;
    for (const Stream& stream : streams_) made.push_back(stream.steps);
    return made;
  }
  double last_bound() const { return bound_; }

 private:
  struct Stream {
    Worker worker;
    Duration rests = 0s;  // the rest of its pause
    double left = kStepBytes, received = 0, steps = 0;
    IncomingStream incoming = {};
  };

  static double rate_of(const Stream& stream, double bound, double round_trip) {
    const double window = bound > 0 ? std::min(bound, stream.worker.window) : stream.worker.window;
    return stream.rests > 0s ? 0 : std::min(window / round_trip, stream.worker.most_per_s);
  }
  double rate_of_all(double bound, double round_trip) const {
    double rate = 0;
    for (const Stream& stream : streams_) rate += rate_of(stream, bound, round_trip);
    return rate;
  }

  /// Simulates one turn. The link's queue grows until all streams together have the link's rate.
  void turn(double bound) {
    double round_trip = delay_, too_long = 10;
    for (int i = 0; i < 40 && rate_of_all(bound, delay_) > kBytesPerS; ++i) {
      const double middle = (round_trip + too_long) / 2;
      (rate_of_all(bound, middle) > kBytesPerS ? round_trip : too_long) = middle;
    }
    round_trip_ = round_trip;
    for (Stream& stream : streams_) {
      const double sent = std::min(stream.left, rate_of(stream, bound, round_trip) * 1e-3);
      stream.rests -= kTurn;
      stream.received += sent;
      stream.steps += sent / kStepBytes;
      stream.left -= sent;
      if (stream.left > 1) continue;
      stream.left = kStepBytes;
      stream.rests = stream.worker.rests;
    }
  }

  double bound_of(IncomingShares& shares) {
    std::vector<IncomingStream*> all;
    for (Stream& stream : streams_) {
      const auto of = [](double s) { return Duration(std::int64_t(s * 1e9)); };
      stream.incoming.way = {of(round_trip_), of(delay_), std::uint64_t(stream.received)};
      all.push_back(&stream.incoming);
    }
    return double(shares.bound(all, kBetweenCalls));
  }

  const double delay_;
  std::vector<Stream> streams_;
  double round_trip_ = 0, bound_ = 0;
};

double sum(const std::vector<double>& steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0);
}

double least_share(const std::vector<double>& steps) {
  return std::ranges::min(steps) * double(steps.size()) / sum(steps);
}

// Two of the eight workers have smaller windows, because they began when the queue was full.
TEST(IncomingShares, OfEvenWorkersAreEvenOnAFullLink) {
  std::vector<FullLink::Worker> workers(8, {.window = 1e6, .most_per_s = 21e6});
  workers[6].window = workers[7].window = 0.3e6;
  const std::vector<double> undivided = FullLink(workers).steps(30, false);
  EXPECT_LT(least_share(undivided), 0.6);
  const std::vector<double> divided = FullLink(workers).steps(30, true);
  EXPECT_GE(least_share(divided), 0.9);
  EXPECT_GE(sum(divided), 0.97 * sum(undivided));
}

TEST(IncomingShares, LeaveAWorkerThatIsSlowItselfWhatItCanUse) {
  std::vector<FullLink::Worker> workers(8, {.window = 1e6});
  workers[3].rests = 2s;
  workers[5].most_per_s = 5e6;
  const std::vector<double> undivided = FullLink(workers).steps(30, false);
  const std::vector<double> divided = FullLink(workers).steps(30, true);
  EXPECT_GE(sum(divided), 0.97 * sum(undivided));
  for (const std::size_t slow : {3, 5}) EXPECT_GE(divided[slow], 0.97 * undivided[slow]);
}

TEST(IncomingShares, HoldNobodyBackWhereNoQueueStands) {
  FullLink idle(std::vector<FullLink::Worker>(2, {.window = 1e6, .most_per_s = 50e6}));
  idle.steps(10, true);
  EXPECT_EQ(idle.last_bound(), 0);
  FullLink alone(std::vector<FullLink::Worker>(1, {.window = 4e6}));
  alone.steps(10, true);
  EXPECT_EQ(alone.last_bound(), 0) << "one stream has the link for itself";
}

TEST(IncomingShares, NeverBoundWhatIsUnderWayBelowWhatFillsTheLink) {
  FullLink link(std::vector<FullLink::Worker>(4, {.window = 2e6}), 8ms);
  const double undivided = sum(link.steps(20, false));
  EXPECT_GE(sum(link.steps(20, true)), 0.97 * undivided);
  EXPECT_GT(link.last_bound(), 0);
}

/// Returns the bound of two streams that bring 40 kB each in a quarter of a second, and wait.
std::size_t bound_of_few_bytes(const IncomingStream& stream) {
  IncomingShares shares;
  std::array<IncomingStream, 2> streams = {stream, stream};
  for (IncomingStream& each : streams) {
    each.way.round_trip = 10ms;
    each.way.shortest_round_trip = 1ms;
    each.way.received = 40'000;
  }
  return shares.bound(std::array{&streams[0], &streams[1]}, 250ms);
}

// The kernel of the sender holds a packet back that is longer than the bound.
TEST(IncomingShares, LeaveRoomForTenPackets) {
  EXPECT_EQ(bound_of_few_bytes({}), 16u << 10);
  EXPECT_EQ(bound_of_few_bytes({.way = {.longest_packet = 8948}}), 89'480u);
}

TEST(IncomingShares, DoNotBoundStreamsThatComeOverNoLink) {
  EXPECT_EQ(bound_of_few_bytes({.within_host = true}), 0u);
  IncomingShares shares;
  std::array<IncomingStream, 3> streams;
  for (IncomingStream& each : streams) {
    each.way.round_trip = 10ms;
    each.way.shortest_round_trip = 1ms;
    each.way.received = 30'000'000;
  }
  streams[2].within_host = true;
  const auto all = std::array{&streams[0], &streams[1], &streams[2]};
  EXPECT_EQ(shares.bound(all, 250ms), std::size_t(60e6 / 0.25 * 0.012 / 2));
}

TEST(IncomingShares, CountAStreamThatRestsForAWhile) {
  IncomingShares shares;
  std::array<IncomingStream, 2> streams;
  const auto bound_after = [&](std::uint64_t first_mb, std::uint64_t second_mb) {
    streams[0].way = {10ms, 1ms, streams[0].way.received + first_mb * 1'000'000};
    streams[1].way = {10ms, 1ms, streams[1].way.received + second_mb * 1'000'000};
    return shares.bound(std::array{&streams[0], &streams[1]}, 250ms);
  };
  EXPECT_EQ(bound_after(0, 0), 0u) << "nothing has arrived";
  const std::size_t half = std::size_t(60e6 / 0.25 * 0.012 / 2);
  EXPECT_EQ(bound_after(30, 30), half);
  const std::size_t more = bound_after(30, 0);
  EXPECT_GT(more, half) << "some of its share is left to the other one";
  EXPECT_LT(more, half * 3 / 2);
  for (int i = 0; i < 20; ++i) bound_after(30, 0);
  EXPECT_EQ(bound_after(30, 0), 0u) << "the other one has the link for itself";
}

}  // namespace
}  // namespace paceline
