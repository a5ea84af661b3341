// How connections of every link begin in vain, and end.
#include "net/conformance.h"

#include <thread>

namespace paceline {
namespace {

using ConformanceOfEnds = Conformance;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Links, ConformanceOfEnds, testing::ValuesIn(links_to_test()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(ConformanceOfEnds, CloseSendsWhatIsQueued) {
  auto listener = listen();
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

TEST_P(ConformanceOfEnds, CloseGivesUpAtItsDeadline) {
  auto listener = listen();
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

TEST_P(ConformanceOfEnds, DestroyingALinkEndsItsConnections) {
  auto listener = listen();
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

TEST_P(ConformanceOfEnds, DestroyingTheListeningLinkEndsItsPeers) {
  auto listener = listen();
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

TEST_P(ConformanceOfEnds, AReceiverThatThrowsEndsTheConnection) {
  auto listener = listen();
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

TEST_P(ConformanceOfEnds, AnAcceptorMayRefuse) {
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

TEST_P(ConformanceOfEnds, NobodyListensIsSaid) {
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

TEST_P(ConformanceOfEnds, AnAddressInUseIsSaid) {
  auto listener = listen();
  auto link = make();
  try {
    link->listen(listener->address(), [](std::shared_ptr<Connection>) { return nullptr; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("is in use (another task"));
  }
}

}  // namespace
}  // namespace paceline
