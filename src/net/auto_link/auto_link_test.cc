// Which kind of link "auto" takes, and when it gives up.
#include "net/tcp/tcp_socket.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

using testing::HasSubstr;

TEST(AutoLink, EndsATryWhenItsCallerIsToldTo) {
  const ListeningSocket silent = listen_at({"127.0.0.1", 0});
  const EventFd told;
  told.raise();
  TestReceiver receiver;
  const auto link = make_mortal_link("auto");
  const Deadline deadline = soon().or_when_readable(told.fd());
  try {
    link->connect(silent.address, receiver, deadline);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr(silent.address));
  }
  EXPECT_FALSE(deadline.passed());
}

TEST(AutoLink, TakesTcpWhereTheOtherWantsIt) {
  Listener listener(make_link("tcp", {}), "127.0.0.1:0");
  TestReceiver receiver;
  const auto link = make_link("auto", {});
  const auto connection = link->connect(listener.address(), receiver, soon());
  EXPECT_FALSE(connection->can_share());
  connection->send({}, {});
  ASSERT_NE(listener.receiver(0), nullptr);
  EXPECT_TRUE(listener.receiver(0)->wait_frames(1));
}

}  // namespace
}  // namespace paceline
