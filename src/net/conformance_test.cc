// Tests that every kind of link carries frames and shared memory.
#include "net/testing/conformance.h"

#include <thread>

namespace paceline {
namespace {

INSTANTIATE_TEST_SUITE_P(Links, Conformance, testing::ValuesIn(links_to_test()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(Conformance, FramesArriveWholeAndInOrder) {
  ConnectedEnds ends = connect();
  constexpr std::size_t kFrames = 2000;
  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < kFrames; ++i) payloads.push_back(pattern(i * 7 % 5000, int(i)));
  SentCounter sent;
  for (std::size_t i = 0; i < kFrames; ++i)
    ends.connection->send({.type = std::uint16_t(i), .id = 7, .offset = i * 3, .step = i},
                          payloads[i], &SentCounter::add, &sent);
  ASSERT_TRUE(sent.wait(kFrames));

  ASSERT_TRUE(ends.far->wait_frames(kFrames));
  const auto frames = ends.far->frames();
  for (std::size_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(frames[i].header.step, i);
    EXPECT_EQ(frames[i].header.type, i);
    EXPECT_EQ(frames[i].header.offset, i * 3);
    EXPECT_EQ(frames[i].header.payload_bytes, payloads[i].size());
    EXPECT_EQ(frames[i].payload, payloads[i]);
  }
}

TEST_P(Conformance, EmptyAndLargestMessagesArrive) {
  ConnectedEnds ends = connect();
  const auto large = pattern(kMaxPayloadBytes, 5);
  SentCounter sent;
  ends.connection->send({.step = 1}, {}, &SentCounter::add, &sent);
  ends.connection->send({.step = 2}, large, &SentCounter::add, &sent);
  ends.connection->send({.step = 3}, std::span(large).first(1), &SentCounter::add, &sent);
  ASSERT_TRUE(ends.far->wait_frames(3));
  EXPECT_TRUE(sent.wait(3));
  const auto frames = ends.far->frames();
  EXPECT_EQ(frames[0].header.payload_bytes, 0u);
  EXPECT_EQ(frames[1].header.payload_bytes, kMaxPayloadBytes);
  EXPECT_EQ(frames[2].header.step, 3u);
  EXPECT_THAT(frames[1].payload,
              testing::ElementsAreArray(large.begin(), large.begin() + (1 << 16)));
  const std::span<std::byte> place = ends.far->place_payload({.payload_bytes = kMaxPayloadBytes});
  EXPECT_TRUE(std::equal(place.begin() + 1, place.end(), large.begin() + 1));
}

// The peer does not read. So earlier frames wait in the queue, or the queue is empty and there is
// no room, or there is room for only a part of a short frame.
TEST_P(Conformance, OfWhatIsSentAsACopyTheSenderMayChangeTheRest) {
  constexpr std::size_t kAll = 24'000'000;
  for (const std::size_t bytes : {60'000, 10'000}) {
    ConnectedEnds ends = connect();
    ends.far->hold(true);
    for (std::size_t i = 0; i < kAll / bytes; ++i) {
      std::vector<std::byte> payload = pattern(bytes, int(i));
      ends.connection->send_copy({.step = i}, payload);
      std::ranges::fill(payload, std::byte{});
    }
    EXPECT_FALSE(ends.connection->idle()) << "all found room";
    ends.far->hold(false);
    ASSERT_TRUE(ends.far->wait_frames(kAll / bytes));
    const auto frames = ends.far->frames();
    for (std::size_t i = 0; i < kAll / bytes; ++i) {
      ASSERT_EQ(frames[i].header.step, i);
      ASSERT_TRUE(std::ranges::equal(frames[i].payload, pattern(bytes, int(i)))) << i;
    }
  }
}

TEST_P(Conformance, ManyThreadsMaySend) {
  auto listener = listen(2);
  TestReceiver receiver;
  auto link = make(2);
  const auto connection = link->connect(listener->address(), receiver, soon());
  constexpr int kThreads = 4, kEach = 500;
  SentCounter sent;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> payloads;
  threads.reserve(kThreads);
  payloads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) payloads.push_back(pattern(100 + 3000 * std::size_t(t), t));
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        connection->send({.id = std::uint32_t(t), .step = std::uint64_t(i)},
                         payloads[std::size_t(t)], &SentCounter::add, &sent);
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(sent.wait(kThreads * kEach));
  ASSERT_TRUE(listener->receiver(0)->wait_frames(kThreads * kEach));
  std::vector<std::uint64_t> next(kThreads, 0);
  for (const auto& frame : listener->receiver(0)->frames()) {
    EXPECT_EQ(frame.header.step, next[frame.header.id]++);
    EXPECT_EQ(frame.payload, payloads[frame.header.id]);
  }
}

TEST_P(Conformance, ManyPeersAreServed) {
  auto listener = listen(2);
  listener->reply();
  constexpr std::size_t kPeers = 32, kFrames = 50;
  std::vector<std::unique_ptr<TestReceiver>> receivers;
  auto link = make();
  std::vector<std::shared_ptr<Connection>> connections;
  for (std::size_t i = 0; i < kPeers; ++i) {
    receivers.push_back(std::make_unique<TestReceiver>());
    connections.push_back(link->connect(listener->address(), *receivers[i], soon()));
  }
  const auto payload = pattern(1000, 1);
  SentCounter sent;
  for (std::size_t f = 0; f < kFrames; ++f)
    for (std::size_t i = 0; i < kPeers; ++i)
      connections[i]->send({.id = std::uint32_t(i), .step = f}, payload, &SentCounter::add, &sent);
  ASSERT_TRUE(sent.wait(kPeers * kFrames));
  for (std::size_t i = 0; i < kPeers; ++i) {
    ASSERT_TRUE(receivers[i]->wait_frames(kFrames));
    const auto frames = receivers[i]->frames();
    for (std::size_t f = 0; f < kFrames; ++f) {
      EXPECT_EQ(frames[f].header.id, i);
      EXPECT_EQ(frames[f].header.step, f);
    }
  }
}

TEST_P(Conformance, FramesForASlowReaderStayBorrowed) {
  ConnectedEnds ends = connect();
  ends.far->hold(true);
  constexpr int kFrames = 64;  // 128 MiB: more than any system buffers
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < kFrames; ++i)
    ends.connection->send({.step = std::uint64_t(i)}, payload, &SentCounter::add, &sent);
  EXPECT_LT(sent.count(), kFrames);
  EXPECT_FALSE(ends.connection->idle());
  ends.far->hold(false);
  ASSERT_TRUE(ends.far->wait_frames(kFrames));
  EXPECT_TRUE(sent.wait(kFrames));
  EXPECT_EQ(sent.count(), kFrames);
}

TEST_P(Conformance, BothEndsSendLargeMessagesAtOnce) {
  ConnectedEnds ends = connect();
  const auto back = ends.listener->connection(0);
  ASSERT_NE(back, nullptr);
  const auto payload = pattern(16 << 20, 3);
  SentCounter sent;
  for (int i = 0; i < 4; ++i) {
    ends.connection->send({}, payload, &SentCounter::add, &sent);
    back->send({}, payload, &SentCounter::add, &sent);
  }
  EXPECT_TRUE(ends.receiver.wait_frames(4));
  EXPECT_TRUE(ends.far->wait_frames(4));
  EXPECT_TRUE(sent.wait(8));
}

TEST_P(Conformance, TrafficIsCounted) {
  ConnectedEnds ends = connect();
  const auto payload = pattern(3 << 20, 1);
  SentCounter sent;
  ends.connection->send({}, payload, &SentCounter::add, &sent);
  ends.connection->send({}, {}, &SentCounter::add, &sent);
  const auto back = ends.listener->connection(0);
  ASSERT_TRUE(ends.far->wait_frames(2));
  ASSERT_TRUE(sent.wait(2));
  const std::int64_t bytes = (3 << 20) + 2 * std::int64_t(GetParam().framing_bytes);
  EXPECT_EQ(ends.connection->traffic().bytes_sent, bytes);
  EXPECT_EQ(back->traffic().bytes_received, bytes);
  EXPECT_EQ(back->traffic().bytes_sent, 0);
  EXPECT_GT(ends.connection->traffic().busy_ns, 0);
  EXPECT_GT(back->traffic().busy_ns, 0);
  EXPECT_TRUE(ends.connection->idle());
}

TEST_P(Conformance, MemoryIsSharedInOrderWithTheFrames) {
  ConnectedEnds ends = connect();
  ASSERT_EQ(ends.connection->can_share(), GetParam().shares);
  const auto memory = SharedMemory::create(3 << 20);
  if (!GetParam().shares) {
    EXPECT_THROW(ends.connection->share(1, memory), Error);
    return;
  }
  const auto payload = pattern(100'000, 1);
  ends.connection->send({.step = 1}, {});
  ends.connection->send({.step = 2}, payload);
  ends.connection->share(77, memory);
  ends.connection->send({.step = 3}, {});
  ends.connection->share(78, SharedMemory::create(1));
  memory->bytes()[1 << 20] = std::byte{9};
  const auto shared = ends.far->wait_shared(2);
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(shared[0].id, 77u);
  EXPECT_EQ(shared[0].frames_before, 2u);
  EXPECT_EQ(shared[1].id, 78u);
  EXPECT_EQ(shared[1].frames_before, 3u);
  ASSERT_EQ(shared[0].memory->size(), std::size_t(3 << 20));
  EXPECT_EQ(shared[0].memory->bytes()[1 << 20], std::byte{9});
  EXPECT_EQ(ends.connection->traffic().bytes_sent,
            3 * std::int64_t(GetParam().framing_bytes) + 100'000);
}

TEST_P(Conformance, SharedMemoryOutlivesTheConnection) {
  if (!GetParam().shares) GTEST_SKIP() << GetParam() << " shares no memory";
  auto listener = listen();
  TestReceiver receiver;
  auto link = make();
  link->connect(listener->address(), receiver, soon());
  const auto far = listener->connection(0);
  ASSERT_NE(far, nullptr);
  auto memory = SharedMemory::create(100);
  memory->bytes()[99] = std::byte{4};
  far->share(5, memory);
  memory.reset();
  const auto shared = receiver.wait_shared(1);
  ASSERT_EQ(shared.size(), 1u);
  listener->destroy_link();
  receiver.wait_closed();
  EXPECT_EQ(shared[0].memory->bytes()[99], std::byte{4});
}

}  // namespace
}  // namespace paceline
