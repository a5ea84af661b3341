// Tests of inproc links that the conformance suite does not have.
#include "net/inproc/inproc_link.h"

#include <thread>

#include "net/testing/conformance.h"

namespace paceline {
namespace {

/// Reports when a call of on_frame has begun.
class EnteredReceiver : public TestReceiver {
 public:
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    entered = true;
    TestReceiver::on_frame(header, payload);
  }
  std::atomic<bool> entered{false};
};

// While a helper takes a turn on a connection, the link's thread leaves that connection alone. The
// helper may not take another turn, so the link's thread must look afterwards for what arrived
// meanwhile.
TEST(InprocLink, HandlesAfterATurnOfAHelperWhatCameInIt) {
  const auto hub = std::make_shared<InprocHub>();
  Listener listener(make_inproc_link({}, hub), "task:0");
  EnteredReceiver receiver;
  const auto link = make_inproc_link({}, hub);
  const auto near = link->connect(listener.address(), receiver, soon());
  const std::shared_ptr<Connection> far = listener.connection(0);
  ASSERT_NE(far, nullptr);
  for (std::size_t i = 1; i <= 20; ++i) {
    receiver.hold(true);
    receiver.entered = false;
    const auto until_entered = [&](const auto& meanwhile) {
      for (const Deadline deadline = soon(); !receiver.entered && !deadline.passed();) meanwhile();
    };
    // The helper polls before the frames arrive, so it mostly begins before the link's thread
    // wakes.
    std::thread helper([&] { until_entered([&] { link->help(); }); });
    for (int frame = 0; frame < 2; ++frame) far->send({}, {});
    until_entered([] { std::this_thread::yield(); });
    receiver.hold(false);
    helper.join();
    ASSERT_TRUE(receiver.wait_frames(2 * i));
  }
}

/// Raises `asked` when the receiver is asked for a place, and gives the place once `goes_on` is
/// raised. Until then the payload stays borrowed.
class SlowReceiver : public TestReceiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader& header) override {
    asked.raise();
    goes_on.wait(soon());
    return TestReceiver::place_payload(header);
  }
  const EventFd asked, goes_on;
};

// A refused connection ends only once nobody reads its frames any more. Until then the link must
// not ask the acceptor again.
TEST(InprocLink, AsksAnAcceptorOnceThatSendsAndRefuses) {
  const auto hub = std::make_shared<InprocHub>();
  SlowReceiver receiver;
  const auto payload = pattern(1000, 1);
  int times_asked = 0;
  const EventFd asked_again;
  const auto listening = make_inproc_link({}, hub);
  const std::string address =
      listening->listen("task:0", [&](const std::shared_ptr<Connection>& connection) -> Receiver* {
        if (++times_asked > 1) asked_again.raise();
        connection->send({}, payload);
        receiver.asked.wait(soon());
        throw Error(ErrorCode::kFailedPrecondition, "no");
      });
  const auto link = make_inproc_link({}, hub);
  const auto connection = link->connect(address, receiver, soon());
  EXPECT_FALSE(asked_again.wait(Deadline::after(std::chrono::milliseconds(50))));
  receiver.goes_on.raise();
  EXPECT_EQ(receiver.wait_closed().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace paceline
