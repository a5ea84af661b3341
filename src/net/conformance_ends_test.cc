// Tests how connections of every link fail to begin, and how they end.
#include "base/testing/error_of.h"
#include "net/testing/conformance.h"

#include <filesystem>
#include <iterator>
#include <thread>

namespace paceline {
namespace {

using ConformanceOfEnds = Conformance;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Links, ConformanceOfEnds, testing::ValuesIn(links_to_test()),
                         [](const auto& one) { return one.param.kind; });

TEST_P(ConformanceOfEnds, CloseSendsWhatIsQueued) {
  ConnectedEnds ends = connect();
  const auto payload = pattern(4 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < 8; ++i) ends.connection->send({}, payload, &SentCounter::add, &sent);
  ends.connection->close(soon());
  // Too late to be sent, but the link still gives the frame back.
  ends.connection->send({}, payload, &SentCounter::add, &sent);

  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kCancelled);
  const Error error = ends.far->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("closed the connection"));
  EXPECT_EQ(ends.far->count(), 8u);
  EXPECT_TRUE(sent.wait(9));
  EXPECT_EQ(ends.far->times_closed(), 1);
  EXPECT_EQ(ends.receiver.times_closed(), 1);
}

TEST_P(ConformanceOfEnds, CloseGivesUpAtItsDeadline) {
  ConnectedEnds ends = connect();
  ends.far->hold(true);
  const auto payload = pattern(2 << 20, 1);
  SentCounter sent;
  for (int i = 0; i < 64; ++i) ends.connection->send({}, payload, &SentCounter::add, &sent);
  ends.connection->close(Deadline::after(std::chrono::milliseconds(50)));
  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kCancelled);
  EXPECT_EQ(sent.count(), 64);
  ends.far->hold(false);
  EXPECT_EQ(ends.far->wait_closed().code(), ErrorCode::kUnavailable);
}

// Once the end is reported, the owner may free the payloads that it lent. So the link gives back
// all frames before it reports the end.
TEST_P(ConformanceOfEnds, AnEndIsToldAfterItsFramesWereGivenBack) {
  ConnectedEnds ends = connect();
  struct Lent {
    TestReceiver& receiver;
    SentCounter begun, given_back;
    int told_before = 0;
  } lent{ends.receiver, {}, {}};
  const auto payload = pattern(1000, 1);
  ends.connection->send(
      {}, payload,
      [](void* context) {
        auto& frame = *static_cast<Lent*>(context);
        SentCounter::add(&frame.begun);
        // During this pause the link could report the end, if it did not wait for this call to
        // return.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        frame.told_before = frame.receiver.times_closed();
        SentCounter::add(&frame.given_back);
      },
      &lent);
  ASSERT_TRUE(lent.begun.wait(1));
  ends.connection->close(soon());
  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kCancelled);
  EXPECT_EQ(lent.given_back.count(), 1);
  EXPECT_EQ(lent.told_before, 0);
}

TEST_P(ConformanceOfEnds, NorIsTheEndThatThePeerClosesToldBefore) {
  ConnectedEnds ends = connect();
  ends.far->hold(true);
  const auto payload = pattern(1000, 1);
  SentCounter sent;
  for (int i = 0; i < 3; ++i) ends.connection->send({}, payload, &SentCounter::add, &sent);
  ASSERT_TRUE(sent.wait(1));
  ends.listener->connection(0)->close(soon());
  // During this pause the link could report the end, if it did not wait for the frames.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(ends.receiver.times_closed() == 0 || sent.count() == 3);
  ends.far->hold(false);
  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(sent.count(), 3);
}

TEST_P(ConformanceOfEnds, DestroyingALinkEndsItsConnections) {
  ConnectedEnds ends = connect(2);
  const auto payload = pattern(100'000, 1);
  SentCounter sent;
  std::atomic<bool> stop{false};
  std::atomic<int> sends{0};
  std::thread sender([&] {
    while (!stop && sends < 20'000) {
      ends.connection->send({}, payload, &SentCounter::add, &sent);
      ++sends;
    }
  });
  EXPECT_TRUE(ends.far->wait_frames(10));
  ends.link.reset();
  EXPECT_EQ(ends.receiver.times_closed(), 1);
  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kCancelled);
  stop = true;
  sender.join();
  EXPECT_TRUE(sent.wait(sends));
  EXPECT_EQ(sent.count(), sends);
  EXPECT_EQ(ends.far->wait_closed().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(ends.far->times_closed(), 1);
}

TEST_P(ConformanceOfEnds, DestroyingTheListeningLinkEndsItsPeers) {
  ConnectedEnds ends = connect();
  ends.listener->destroy_link();
  EXPECT_EQ(ends.far->times_closed(), 1);
  const Error error = ends.receiver.wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr(ends.listener->address()));
  EXPECT_THROW(ends.link->connect(ends.listener->address(), ends.receiver, soon()), Error);
}

TEST_P(ConformanceOfEnds, AReceiverThatThrowsEndsTheConnection) {
  ConnectedEnds ends = connect();
  ends.far->refuse_frames();
  ends.connection->send({}, {});
  const Error error = ends.far->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.what(), HasSubstr("the test refuses this frame"));
  EXPECT_EQ(ends.receiver.wait_closed().code(), ErrorCode::kUnavailable);
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

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST_P(ConformanceOfEnds, AnAddressInUseIsSaidAndNothingStaysOpen) {
  auto listener = listen();
  auto link = make();
  const std::ptrdiff_t open_before = open_descriptors();
  const auto listen_too = [&] {
    link->listen(listener->address(), [](std::shared_ptr<Connection>) { return nullptr; });
  };
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, listen_too), HasSubstr("is in use (another task"));
  EXPECT_EQ(open_descriptors(), open_before);
}

}  // namespace
}  // namespace paceline
