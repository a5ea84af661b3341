#include "net/conformance.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace paceline {
namespace {

using testing::HasSubstr;

class Conformance : public testing::TestWithParam<LinkCase> {
 protected:
  std::unique_ptr<Link> make(int threads = 1) {
    LinkOptions options;
    options.hub = hub_;
    options.threads = threads;
    return make_link(GetParam().kind, options);
  }
  std::unique_ptr<Listener> make_listener(int threads = 1) {
    return std::make_unique<Listener>(make(threads), GetParam().any_address);
  }
  static Deadline soon() { return Deadline::after(kPatience); }

  const std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>();
};

INSTANTIATE_TEST_SUITE_P(Links, Conformance, testing::ValuesIn(links_to_test()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(Conformance, FramesArriveWholeAndInOrder) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  constexpr std::size_t kFrames = 2000;
  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < kFrames; ++i) payloads.push_back(pattern(i * 7 % 5000, int(i)));
  SentCounter sent;
  for (std::size_t i = 0; i < kFrames; ++i)
    connection->send({.type = std::uint16_t(i), .id = 7, .offset = i * 3, .step = i}, payloads[i],
                     &SentCounter::add, &sent);
  ASSERT_TRUE(sent.wait(kFrames));

  ASSERT_TRUE(listener->receiver(0)->wait_frames(kFrames));
  const auto frames = listener->receiver(0)->frames();
  for (std::size_t i = 0; i < kFrames; ++i) {
    EXPECT_EQ(frames[i].header.step, i);
    EXPECT_EQ(frames[i].header.type, i);
    EXPECT_EQ(frames[i].header.offset, i * 3);
    EXPECT_EQ(frames[i].header.payload_bytes, payloads[i].size());
    EXPECT_EQ(frames[i].payload, payloads[i]);
  }
}

TEST_P(Conformance, EmptyAndLargestMessagesArrive) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  const auto large = pattern(kMaxPayloadBytes, 5);
  SentCounter sent;
  connection->send({.step = 1}, {}, &SentCounter::add, &sent);
  connection->send({.step = 2}, large, &SentCounter::add, &sent);
  connection->send({.step = 3}, std::span(large).first(1), &SentCounter::add, &sent);
  ASSERT_TRUE(far->wait_frames(3));
  EXPECT_TRUE(sent.wait(3));
  const auto frames = far->frames();
  EXPECT_EQ(frames[0].header.payload_bytes, 0u);
  EXPECT_EQ(frames[1].header.payload_bytes, kMaxPayloadBytes);
  EXPECT_EQ(frames[2].header.step, 3u);
  EXPECT_THAT(frames[1].payload,
              testing::ElementsAreArray(large.begin(), large.begin() + (1 << 16)));
  const std::span<std::byte> place = far->place_payload({.payload_bytes = kMaxPayloadBytes});
  EXPECT_TRUE(std::equal(place.begin() + 1, place.end(), large.begin() + 1));
}

TEST_P(Conformance, ManyThreadsMaySend) {
  auto listener = make_listener(2);
  TestReceiver receiver;
  auto link = make(2);
  const auto connection = link->connect(listener->address(), receiver, soon());
  constexpr int kThreads = 4, kEach = 500;
  SentCounter sent;
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> payloads;
  for (int t = 0; t < kThreads; ++t) payloads.push_back(pattern(std::size_t(100 + 3000 * t), t));
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
  auto listener = make_listener(2);
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
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  far->hold(true);
  constexpr int kFrames = 64;  // more than any system buffers
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < kFrames; ++i)
    connection->send({.step = std::uint64_t(i)}, payload, &SentCounter::add, &sent);
  EXPECT_LT(sent.count(), kFrames);
  EXPECT_FALSE(connection->idle());
  far->hold(false);
  ASSERT_TRUE(far->wait_frames(kFrames));
  EXPECT_TRUE(sent.wait(kFrames));
  EXPECT_EQ(sent.count(), kFrames);
}

TEST_P(Conformance, BothEndsSendLargeMessagesAtOnce) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  const auto far = listener->connection(0);
  ASSERT_NE(far, nullptr);
  const auto payload = pattern(16 << 20, 3);
  SentCounter sent;
  for (int i = 0; i < 4; ++i) {
    connection->send({}, payload, &SentCounter::add, &sent);
    far->send({}, payload, &SentCounter::add, &sent);
  }
  EXPECT_TRUE(receiver.wait_frames(4));
  EXPECT_TRUE(listener->receiver(0)->wait_frames(4));
  EXPECT_TRUE(sent.wait(8));
}

TEST_P(Conformance, CloseSendsWhatIsQueued) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  const auto payload = pattern(4 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < 8; ++i) connection->send({}, payload, &SentCounter::add, &sent);
  connection->close(soon());
  connection->send({}, payload, &SentCounter::add, &sent);  // too late, but given back

  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kCancelled);
  TestReceiver* far = listener->receiver(0);
  const Error error = far->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("closed the connection"));
  EXPECT_EQ(far->count(), 8u);
  EXPECT_TRUE(sent.wait(9));
  EXPECT_EQ(far->times_closed(), 1);
  EXPECT_EQ(receiver.times_closed(), 1);
}

TEST_P(Conformance, CloseGivesUpAtItsDeadline) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  far->hold(true);
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < 64; ++i) connection->send({}, payload, &SentCounter::add, &sent);
  connection->close(Deadline::after(std::chrono::milliseconds(50)));
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(sent.wait(far->count() == 0 && GetParam().kind == "inproc" ? 63 : 64));
  far->hold(false);
  EXPECT_EQ(far->wait_closed().code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(sent.wait(64));
}

TEST_P(Conformance, DestroyingALinkEndsItsConnections) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make(2);
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  const auto payload = pattern(100'000, 1);
  SentCounter sent;
  std::atomic<bool> stop{false};
  std::atomic<int> sends{0};
  std::thread sender([&] {
    while (!stop && sends < 20'000) {
      connection->send({}, payload, &SentCounter::add, &sent);
      ++sends;
    }
  });
  EXPECT_TRUE(far->wait_frames(10));
  link.reset();
  EXPECT_EQ(receiver.times_closed(), 1);
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kCancelled);
  stop = true;
  sender.join();
  EXPECT_TRUE(sent.wait(sends));
  EXPECT_EQ(sent.count(), sends);
  EXPECT_EQ(far->wait_closed().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(far->times_closed(), 1);
}

TEST_P(Conformance, DestroyingTheListeningLinkEndsItsPeers) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  ASSERT_NE(listener->receiver(0), nullptr);
  listener->destroy_link();
  EXPECT_EQ(listener->receiver(0)->times_closed(), 1);
  const Error error = receiver.wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr(listener->address()));
  EXPECT_THROW(link->connect(listener->address(), receiver, soon()), Error);
}

TEST_P(Conformance, AReceiverThatThrowsEndsTheConnection) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  far->refuse_frames();
  connection->send({}, {});
  const Error error = far->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("the test refuses this frame"));
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kUnavailable);
}

TEST_P(Conformance, AnAcceptorMayRefuse) {
  TestReceiver receiver;
  auto link = make();
  auto far = make();
  const std::string address =
      far->listen(GetParam().any_address, [](std::shared_ptr<Connection>) -> Receiver* {
        throw Error(ErrorCode::kUnavailable, "no room");
      });
  const auto connection = link->connect(address, receiver, soon());
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kUnavailable);
}

TEST_P(Conformance, NobodyListensIsSaid) {
  TestReceiver receiver;
  auto link = make();
  try {
    link->connect(GetParam().nobody, receiver, soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("nobody listens at " + GetParam().nobody));
  }
}

TEST_P(Conformance, AnAddressInUseIsSaid) {
  auto listener = make_listener();
  auto link = make();
  try {
    link->listen(listener->address(), [](std::shared_ptr<Connection>) { return nullptr; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("is in use (another task"));
  }
}

TEST_P(Conformance, ASpinningCallerHandlesWhatComes) {
  auto listener = make_listener();
  listener->reply();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  link->set_spinning(true);
  const Deadline deadline = soon();
  for (std::size_t i = 0; i < 100; ++i) {
    connection->send({.step = i}, {});
    while (receiver.count() <= i && !deadline.passed()) link->help();
  }
  EXPECT_EQ(receiver.count(), 100u);
  link->set_spinning(false);
  connection->send({}, {});
  EXPECT_TRUE(receiver.wait_frames(101));
}

TEST_P(Conformance, AReceiverThatTakesItsTimeIsNotTakenForDead) {
  LinkOptions options;
  options.hub = hub_;
  options.dead_after = std::chrono::seconds(1);
  Listener listener(make_link(GetParam().kind, options), GetParam().any_address);
  TestReceiver receiver;
  const auto link = make_link(GetParam().kind, options);
  const auto connection = link->connect(listener.address(), receiver, soon());
  TestReceiver* const far = listener.receiver(0);
  ASSERT_NE(far, nullptr);
  far->hold(true);
  connection->send({}, {});
  std::this_thread::sleep_for(3 * options.dead_after);
  EXPECT_EQ(receiver.times_closed(), 0);
  EXPECT_EQ(far->times_closed(), 0);
  far->hold(false);
  EXPECT_TRUE(far->wait_frames(1));
}

/// How often threads of this process, other than the caller and `other`, went to sleep.
std::int64_t sleeps_of_threads_but(pid_t other) {
  std::int64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t id = pid_t(std::stol(task.path().filename().string()));
    std::ifstream status(task.path() / "status");
    for (std::string word; id != ::gettid() && id != other && status >> word;) {
      std::int64_t number = 0;
      if (word == "voluntary_ctxt_switches:" && status >> number) sum += number;
    }
  }
  return sum;
}

TEST_P(Conformance, NoThreadWakesWhileOthersSpin) {
  LinkOptions options;
  options.hub = hub_;
  options.dead_after = std::chrono::hours(1);  // no heartbeats meanwhile
  Listener listener(make_link(GetParam().kind, options), GetParam().any_address);
  listener.reply();
  TestReceiver receiver;
  const auto link = make_link(GetParam().kind, options);
  const auto connection = link->connect(listener.address(), receiver, soon());
  ASSERT_NE(listener.receiver(0), nullptr);
  link->set_spinning(true);
  listener.link().set_spinning(true);
  std::atomic<pid_t> helper_id{0};
  std::atomic<bool> stop{false};
  std::thread helper([&] {
    helper_id = ::gettid();
    for (; !stop; std::this_thread::yield()) listener.link().help();
  });
  const auto exchange = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      connection->send({}, {});
      for (; receiver.count() <= i; std::this_thread::yield()) link->help();
    }
  };
  exchange(0, 10);  // whoever is about to fall asleep does so
  const std::int64_t before = sleeps_of_threads_but(helper_id);
  exchange(10, 210);
  EXPECT_LT(sleeps_of_threads_but(helper_id) - before, 50);
  stop = true;
  helper.join();
}

TEST_P(Conformance, TrafficIsCounted) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  const auto payload = pattern(3 << 20, 1);
  SentCounter sent;
  connection->send({}, payload, &SentCounter::add, &sent);
  connection->send({}, {}, &SentCounter::add, &sent);
  const auto far = listener->connection(0);
  ASSERT_TRUE(listener->receiver(0)->wait_frames(2));
  ASSERT_TRUE(sent.wait(2));
  const std::int64_t bytes = (3 << 20) + 2 * std::int64_t(kFrameHeaderBytes);
  EXPECT_EQ(connection->traffic().bytes_sent, bytes);
  EXPECT_EQ(far->traffic().bytes_received, bytes);
  EXPECT_EQ(far->traffic().bytes_sent, 0);
  EXPECT_GT(connection->traffic().busy_ns, 0);
  EXPECT_GT(far->traffic().busy_ns, 0);
  EXPECT_TRUE(connection->idle());
}

TEST_P(Conformance, MemoryIsSharedInOrderWithTheFrames) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  ASSERT_EQ(connection->can_share(), GetParam().shares);
  const auto memory = SharedMemory::create(3 << 20);
  if (!GetParam().shares) {
    EXPECT_THROW(connection->share(1, memory), Error);
    return;
  }
  const auto payload = pattern(100'000, 1);
  connection->send({.step = 1}, {});
  connection->send({.step = 2}, payload);
  connection->share(77, memory);
  connection->send({.step = 3}, {});
  connection->share(78, SharedMemory::create(1));
  memory->bytes()[1 << 20] = std::byte{9};
  TestReceiver* const far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  const auto shared = far->wait_shared(2);
  ASSERT_EQ(shared.size(), 2u);
  EXPECT_EQ(shared[0].id, 77u);
  EXPECT_EQ(shared[0].frames_before, 2u);
  EXPECT_EQ(shared[1].id, 78u);
  EXPECT_EQ(shared[1].frames_before, 3u);
  ASSERT_EQ(shared[0].memory->size(), std::size_t(3 << 20));
  EXPECT_EQ(shared[0].memory->bytes()[1 << 20], std::byte{9});
  EXPECT_EQ(connection->traffic().bytes_sent, 3 * std::int64_t(kFrameHeaderBytes) + 100'000);
}

TEST_P(Conformance, SharedMemoryOutlivesTheConnection) {
  if (!GetParam().shares) GTEST_SKIP() << GetParam() << " shares no memory";
  auto listener = make_listener();
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

TEST_P(Conformance, WhatHelpLeavesUnsentIsSent) {
  auto listener = make_listener();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  const auto payload = pattern(5 << 20, 1);
  SentCounter sent;
  for (int i = 1; i <= 200; ++i) {
    connection->send({}, payload, &SentCounter::add, &sent);
    while (sent.count() < i && !link->help()) {
    }
    ASSERT_TRUE(sent.wait(i));  // helped in the middle of it, then no more
  }
}

}  // namespace
}  // namespace paceline
