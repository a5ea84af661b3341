// Tests waiting for frames over every link, asleep and polling.
#include <thread>

#include "net/heartbeat_thread.h"
#include "net/liveness_timer.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

using ConformanceOfWaits = Conformance;
INSTANTIATE_TEST_SUITE_P(Links, ConformanceOfWaits, testing::ValuesIn(links_to_test()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(ConformanceOfWaits, ACallerThatPollsHandlesWhatComes) {
  auto listener = listen();
  listener->reply();
  TestReceiver receiver;
  auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  const Deadline deadline = soon();
  for (std::size_t i = 0; i < 100; ++i) {
    connection->send({.step = i}, {});
    while (receiver.count() <= i && !deadline.passed()) link->help();
  }
  EXPECT_EQ(receiver.count(), 100u);
  connection->send({}, {});
  EXPECT_TRUE(receiver.wait_frames(101));
}

// While the receiver is busy, the link still sends heartbeats and receives those of its peers. In
// the test, the clocks of both ends advance by six times the time after which a silent peer is
// dead.
TEST_P(ConformanceOfWaits, AReceiverThatTakesItsTimeIsNotTakenForDead) {
  LinkOptions ticking;
  ticking.ticks = std::make_shared<ManualTicks>();
  Listener listener(make(ticking), GetParam().any_address);
  TestReceiver receiver;
  const auto link = make(ticking);
  const auto connection = link->connect(listener.address(), receiver, soon());
  TestReceiver* const far = listener.receiver(0);
  ASSERT_NE(far, nullptr);
  connection->send({}, {});
  ASSERT_TRUE(far->wait_frames(1));  // from now on the far end sends heartbeats
  far->hold(true);
  connection->send({}, {});
  for (int i = 0; i < 6 * LivenessTimer::kTicksOfDeath; ++i) ticking.ticks->tick();
  EXPECT_EQ(receiver.times_closed(), 0);
  EXPECT_EQ(far->times_closed(), 0);
  far->hold(false);
  EXPECT_TRUE(far->wait_frames(2));
}

/// Waits in a link, and is woken by frames that arrive at its receiver.
class WaitingReceiver : public TestReceiver {
 public:
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    TestReceiver::on_frame(header, payload);
    on_this_thread = std::this_thread::get_id() == waiter;
    wake.raise();
  }
  bool wait(Link& link, std::size_t frames, Deadline deadline) {
    const auto come = [&] { return count() >= frames; };
    return link.wait(wake, deadline, come);
  }

  const EventFd wake;
  const std::thread::id waiter = std::this_thread::get_id();
  std::atomic<bool> on_this_thread{false};
};

TEST_P(ConformanceOfWaits, AWaiterSleepsUntilWhatItWaitsForHasCome) {
  auto listener = listen();
  listener->reply();
  WaitingReceiver receiver;
  const auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  for (std::size_t i = 1; i <= 100; ++i) {
    connection->send({.step = i}, {});
    ASSERT_TRUE(receiver.wait(*link, i, soon()));
  }
  EXPECT_FALSE(receiver.wait(*link, 101, Deadline::after(std::chrono::milliseconds(1))));
  connection->send({}, {});
  // Nobody waits in the link any more, so a thread of the link receives the frame.
  EXPECT_TRUE(receiver.wait_frames(101));
}

TEST_P(ConformanceOfWaits, AWaitEndsAtItsDeadlineHoweverMuchComes) {
  auto listener = listen();
  listener->reply();
  WaitingReceiver receiver;
  const auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  for (int i = 0; i < 1000; ++i) connection->send({}, {});
  const Deadline now = Deadline::after(Duration(0));
  EXPECT_FALSE(link->wait(receiver.wake, now, [&] {
    receiver.wake.raise();
    connection->send({}, {});
    return false;
  }));
}

TEST_P(ConformanceOfWaits, AWaitEndsWhenTheDeadlinesDescriptorCanBeRead) {
  for (const int threads : {1, 2}) {
    const ConnectedEnds ends = connect(threads);
    const EventFd wake, gives_up;
    std::atomic<int> asked{0};
    std::thread other([&] {
      while (asked == 0) std::this_thread::yield();
      gives_up.raise();
    });
    const Deadline deadline = soon();
    EXPECT_FALSE(ends.link->wait(wake, deadline.or_when_readable(gives_up.fd()), [&] {
      ++asked;
      return false;
    }));
    EXPECT_FALSE(deadline.passed()) << threads << " threads";
    other.join();
  }
}

TEST(TcpWaits, AWaiterReadsItself) {
  Listener listener(make_link("tcp", {}), "127.0.0.1:0");
  listener.reply();
  WaitingReceiver receiver;
  const auto link = make_link("tcp", {});
  const auto connection = link->connect(listener.address(), receiver, soon());
  TestReceiver* const far = listener.receiver(0);
  ASSERT_NE(far, nullptr);
  far->hold(true);
  connection->send({}, {});
  receiver.wake.raise();
  int asked = 0;
  EXPECT_TRUE(link->wait(receiver.wake, soon(), [&] {
    if (++asked == 2) far->hold(false);  // the link has woken for the first time
    return receiver.count() == 1;
  }));
  EXPECT_TRUE(receiver.on_this_thread);
}

TEST_P(ConformanceOfWaits, AWaiterIsWokenByWhateverElseItWaitsFor) {
  const ConnectedEnds ends = connect();
  const EventFd wake;
  std::atomic<bool> come{false};
  std::thread other([&] {
    come = true;
    wake.raise();
  });
  EXPECT_TRUE(ends.link->wait(wake, soon(), [&] { return come.load(); }));
  other.join();
}

TEST_P(ConformanceOfWaits, WhatIsConnectedOrSentWhileSomebodyWaitsArrives) {
  TestReceiver receiver;
  auto listener = listen();
  listener->reply();
  const ConnectedEnds ends = connect();
  const auto payload = pattern(64 << 20, 1);  // more than any link takes at once
  const EventFd wake;
  std::atomic<bool> come{false};
  std::thread waiter([&] { ends.link->wait(wake, soon(), [&] { return come.load(); }); });
  SentCounter sent;
  ends.connection->send({}, payload, &SentCounter::add, &sent);
  EXPECT_TRUE(sent.wait(1));
  const auto connection = ends.link->connect(listener->address(), receiver, soon());
  connection->send({}, {});
  EXPECT_TRUE(receiver.wait_frames(1));
  come = true;
  wake.raise();
  waiter.join();
}

TEST_P(ConformanceOfWaits, AWaiterHearsThatAConnectionEnds) {
  auto listener = listen();
  TestReceiver receiver;
  const auto link = make();
  const auto connection = link->connect(listener->address(), receiver, soon());
  TestReceiver* const far = listener->receiver(0);
  ASSERT_NE(far, nullptr);
  far->refuse_frames();
  connection->send({}, {});
  const EventFd wake;
  const auto come = [&] { return receiver.times_closed() == 1; };
  for (const Deadline deadline = soon(); !come() && !deadline.passed();) {
    link->wait(wake, Deadline::after(std::chrono::milliseconds(20)), come);
  }
  EXPECT_TRUE(come());
}

TEST_P(ConformanceOfWaits, WhatHelpLeavesUnsentIsSent) {
  ConnectedEnds ends = connect();
  const auto payload = pattern(5 << 20, 1);
  SentCounter sent;
  for (int i = 1; i <= 200; ++i) {
    ends.connection->send({}, payload, &SentCounter::add, &sent);
    while (sent.count() < i && !ends.link->help()) {
    }
    // This thread has helped in the middle of the frame, and helps no longer. So another thread
    // must send the rest.
    ASSERT_TRUE(sent.wait(i));
  }
}

}  // namespace
}  // namespace paceline
