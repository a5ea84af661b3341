// Tests that a cable which changes a bit ends the connection, and never gives a receiver what was
// not sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "net/testing/conformance.h"
#include "net/testing/flipping_proxy.h"

namespace paceline {
namespace {

using testing::HasSubstr;

constexpr std::size_t kSplitSizes[] = {11, 0, 20};

/// A listener behind a bad cable. The listener answers each frame with the frame's header.
class BadCable : public testing::TestWithParam<Way> {
 protected:
  BadCable() { listener_.reply(); }

  /// One connection: frames go out, and their answers return, unless the connection ends first.
  struct Call {
    TestReceiver near;
    TestReceiver* far = nullptr;
    std::shared_ptr<Connection> connection;
    std::string peer;  // the listener's name for the caller
  };
  void call(Call& call) {
    call.connection = link_->connect(proxy_.address(), call.near, soon());
    call.far = listener_.receiver(calls_);
    ASSERT_NE(call.far, nullptr);
    call.peer = listener_.connection(calls_++)->peer();
    for (const std::size_t size : kSplitSizes)
      call.connection->send_copy({.type = 9}, pattern(size, 1));
  }
  static void expect_as_sent(const TestReceiver& receiver, bool with_payload) {
    const auto frames = receiver.frames();
    ASSERT_LE(frames.size(), std::size(kSplitSizes));
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(frames[i].header.type, 9);
      EXPECT_EQ(frames[i].payload, pattern(with_payload ? kSplitSizes[i] : 0, 1));
    }
  }

  Listener listener_{make_mortal_link("tcp"), "127.0.0.1:0"};
  FlippingProxy proxy_{listener_.address()};
  const std::unique_ptr<Link> link_ = make_mortal_link("tcp");
  std::size_t calls_ = 0;
};

TEST_P(BadCable, IsNoticedAtEveryByte) {
  {
    Call good;
    call(good);
    ASSERT_TRUE(good.near.wait_frames(std::size(kSplitSizes)));
    good.connection->close(soon());
    good.near.wait_closed();
  }
  const std::size_t bytes = proxy_.most_passed(GetParam());
  ASSERT_GE(bytes, std::size(kSplitSizes) * 40);
  for (std::size_t byte = 0; byte < bytes; ++byte) {
    SCOPED_TRACE(byte);
    Call bad;
    proxy_.set(Flip{GetParam(), byte, int(byte % 8)});
    call(bad);
    const bool at_listener = GetParam() == Way::kToListener;
    const Error error = at_listener ? bad.far->wait_closed() : bad.near.wait_closed();
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(at_listener ? bad.peer : proxy_.address()));
    const Error other = at_listener ? bad.near.wait_closed() : bad.far->wait_closed();
    EXPECT_EQ(other.code(), ErrorCode::kUnavailable) << other.what();
    expect_as_sent(*bad.far, true);
    expect_as_sent(bad.near, false);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, BadCable, testing::Values(Way::kToListener, Way::kToCaller),
                         [](const auto& one) {
                           return one.param == Way::kToListener ? "ToListener" : "ToCaller";
                         });

}  // namespace
}  // namespace paceline
