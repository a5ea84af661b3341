#include "predict/simulation/link_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::Lt;

constexpr double kQuantum = 1000;

std::vector<SimulatedHost> hosts_with_links(int count, double bytes_per_s, double latency_s = 0) {
  std::vector<SimulatedHost> all;
  all.reserve(std::size_t(count));
  for (int i = 0; i < count; ++i) all.push_back({i, bytes_per_s, latency_s});
  return all;
}

TEST(LinkNetworkTest, AStreamAloneHasTheLink) {
  VirtualTime time;
  LinkNetwork network(time, hosts_with_links(2, 1e6, 0.5), kQuantum);
  double at = 0;
  network.send(network.open(0, 1), 1e6, [&] { at = time.seconds(); });
  time.run();
  EXPECT_THAT(at, DoubleNear(2, 0.01));  // one second, and the delay of both links
  EXPECT_THAT(network.sent()[0], DoubleNear(1e6, 1));
  EXPECT_THAT(network.received()[1], DoubleNear(1e6, 1));
}

/// Sends the bytes that a link carries in a second from host 0 to host 1, split evenly over
/// `streams` streams. Returns the time at which all bytes have arrived.
double narrow_stream(const SimulatedPair& pair, int streams = 1) {
  VirtualTime time;
  const std::vector<SimulatedPair> pairs = {pair};
  LinkNetwork network(time, hosts_with_links(2, 1e6, 0.5), kQuantum, pairs);
  double at = 0;
  for (int i = 0; i < streams; ++i) {
    network.send(network.open(0, 1), 1e6 / streams, [&] { at = std::max(at, time.seconds()); });
  }
  time.run();
  return at;
}

TEST(LinkNetworkTest, WhatLiesBetweenTwoHostsMayBeNarrowerThanTheirLinks) {
  EXPECT_THAT(narrow_stream({0, 1, 0.5e6}, 4), DoubleNear(3, 0.02)) << "all streams share it";
  EXPECT_THAT(narrow_stream({0, 1, 1e6, 0.25e6}, 1), DoubleNear(5, 0.02));
  EXPECT_THAT(narrow_stream({0, 1, 1e6, 0.25e6}, 2), DoubleNear(3, 0.02)) << "each has its own";
  EXPECT_THAT(narrow_stream({0, 1, 0, 0, 0.1}), DoubleNear(1.1, 0.02)) << "its own delay";
  EXPECT_THAT(narrow_stream({1, 0, 0.1e6}), DoubleNear(2, 0.02)) << "of the other way";
}

TEST(LinkNetworkTest, ASlowPairLeavesTheLinkToOthers) {
  VirtualTime time;
  const std::vector<SimulatedPair> pairs = {{1, 0, 0.1e6}};
  LinkNetwork network(time, hosts_with_links(3, 1e6), kQuantum, pairs);
  double slow = 0, fast = 0;
  network.send(network.open(1, 0), 0.2e6, [&] { slow = time.seconds(); });
  network.send(network.open(2, 0), 0.9e6, [&] { fast = time.seconds(); });
  time.run();
  EXPECT_THAT(slow, DoubleNear(2, 0.05));
  EXPECT_THAT(fast, DoubleNear(1, 0.05));
  EXPECT_THAT(network.carried()[0], DoubleNear(0.2e6, 1));
}

TEST(LinkNetworkTest, AHostMayReceiveMoreSlowlyThanItSends) {
  VirtualTime time;
  std::vector<SimulatedHost> hosts = hosts_with_links(2, 1e6);
  hosts[1].receive_bytes_per_s = 0.5e6;
  LinkNetwork network(time, hosts, kQuantum);
  double there = 0, back = 0;
  network.send(network.open(0, 1), 1e6, [&] { there = time.seconds(); });
  network.send(network.open(1, 0), 1e6, [&] { back = time.seconds(); });
  time.run();
  EXPECT_THAT(there, DoubleNear(2, 0.02));
  EXPECT_THAT(back, DoubleNear(1, 0.02));
}

/// Returns, in order, the times at which all bytes of four streams to one host have arrived. Each
/// stream sends the bytes that a link carries in a second, in `sends` messages.
std::vector<double> four_streams(int sends) {
  VirtualTime time;
  LinkNetwork network(time, hosts_with_links(5, 1e6), kQuantum);
  std::vector<double> at(4);
  for (int from = 1; from < 5; ++from) {
    const int stream = network.open(from, 0);
    for (int i = 0; i < sends; ++i) {
      network.send(stream, 1e6 / sends, [&, from] { at[std::size_t(from) - 1] = time.seconds(); });
    }
  }
  time.run();
  std::ranges::sort(at);
  return at;
}

TEST(LinkNetworkTest, StreamsToOneHostShareItsLinkUnevenly) {
  const std::vector<double> at = four_streams(1);
  EXPECT_THAT(at.back(), DoubleNear(4, 0.01)) << "the link is always busy";
  EXPECT_THAT(at.front(), AllOf(Gt(2), Lt(3.9)));
}

TEST(LinkNetworkTest, OverManySendsTheSharesAreEven) {
  for (const double each : four_streams(100)) EXPECT_THAT(each, DoubleNear(4, 0.3));
}

// Max-min fairness: some streams are limited elsewhere, and the stream whose path is free takes
// what they leave.
TEST(LinkNetworkTest, WhatOneStreamCannotUseAnotherTakes) {
  VirtualTime time;
  LinkNetwork network(time, hosts_with_links(4, 1e6), kQuantum);
  double narrow = 0, wide = 0;
  // Hosts 0, 1 and 2 send to host 3, and host 0 also sends to host 1.
  for (int from = 1; from < 3; ++from) network.send(network.open(from, 3), 2e6, [] {});
  network.send(network.open(0, 3), 1e6, [&] { narrow = time.seconds(); });
  network.send(network.open(0, 1), 2e6, [&] { wide = time.seconds(); });
  time.run();
  EXPECT_THAT(narrow, DoubleNear(3, 0.35));  // a third of host 3's link
  EXPECT_THAT(wide, DoubleNear(3, 0.35));    // two thirds of its own link
}

// A stream in each direction gets the whole rate of the link, as in TCP.
TEST(LinkNetworkTest, TheTwoWaysOfALinkAreApart) {
  VirtualTime time;
  LinkNetwork network(time, hosts_with_links(2, 1e6), kQuantum);
  std::vector<double> at(2);
  network.send(network.open(0, 1), 1e6, [&] { at[0] = time.seconds(); });
  network.send(network.open(1, 0), 1e6, [&] { at[1] = time.seconds(); });
  time.run();
  for (const double each : at) EXPECT_THAT(each, DoubleNear(1, 0.01));
}

}  // namespace
}  // namespace paceline
