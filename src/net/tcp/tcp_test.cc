// Tests faults that only TCP can have: strangers, torn messages, peers that die or stop, and host
// names.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstring>
#include <future>

#include "base/address.h"
#include "net/accept/preamble.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "net/tcp/tcp_header.h"
#include "net/testing/conformance.h"
#include "net/testing/raw_socket.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TcpPeer, ThatDiesInTheMiddleOfAMessageIsNoticed) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  peer.data.write(encode_tcp({.payload_bytes = 1000}));
  peer.data.write(std::string(10, 'x'));
  ASSERT_NE(listener.receiver(0), nullptr);
  peer.data.close();
  const Error error = listener.receiver(0)->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("in the middle of a message (10 of 1000 bytes)"));
  EXPECT_EQ(listener.receiver(0)->count(), 0u);
  EXPECT_EQ(listener.receiver(0)->times_closed(), 1);
}

TEST(TcpPeer, ThatSendsGarbageIsCutOff) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  peer.data.write("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n");
  const Error error = listener.receiver(0)->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr(listener.connection(0)->peer()));
  EXPECT_THAT(error.what(), HasSubstr("GET / HTTP"));
  EXPECT_TRUE(peer.data.is_closed_by_peer());
}

TEST(TcpPeer, ThatSendsGarbageForHeartbeatsIsCutOff) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  peer.control.write("HHHx");
  EXPECT_EQ(listener.receiver(0)->wait_closed().code(), ErrorCode::kDataLoss);
}

// A caller that must encrypt may be told so on its control socket first, and then on its data
// socket.
TEST(TcpPeer, ThatMustEncryptSaysSoOnTheControlSocket) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  peer.control.write(std::string("\x15\x03\x03\0\x02\x02\x47", 7));
  EXPECT_THAT(listener.receiver(0)->wait_closed().what(),
              AllOf(HasSubstr(listener.connection(0)->peer()), HasSubstr("without --insecure")));
}

TEST(TcpPeer, ThatLiesAboutALengthIsCutOff) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  peer.data.write(encode_tcp({.payload_bytes = kMaxPayloadBytes + 1}));
  const Error error = listener.receiver(0)->wait_closed();
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(kMaxPayloadBytes + 1)));
}

TEST(TcpPeer, ThatSendsNoHeartbeatIsDead) {
  Listener listener(make_mortal_link("tcp", std::chrono::milliseconds(100)), "127.0.0.1:0");
  RawTcpPeer peer(listener.address());
  EXPECT_THAT(listener.receiver(0)->wait_closed().what(), HasSubstr("no heartbeat for 0.1 s"));
}

TEST(TcpAcceptor, DropsStrangersAndServesOthers) {
  Listener listener(make_mortal_link("tcp", std::chrono::milliseconds(500)), "127.0.0.1:0");
  RawSocket silent(listener.address()), rude(listener.address()), alone(listener.address()),
      other_version(listener.address());
  rude.write("GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n");
  alone.write(encode(Preamble{SocketRole::kData, random_token()}));
  auto version_9 = encode(Preamble{SocketRole::kData, random_token()});
  version_9[4] = std::byte{9};
  other_version.write(version_9);
  for (RawSocket* socket : {&rude, &other_version, &silent, &alone})
    EXPECT_TRUE(socket->is_closed_by_peer());
  EXPECT_EQ(listener.count(), 0u);

  TestReceiver receiver;
  const auto link = make_mortal_link("tcp");
  const auto connection = link->connect(listener.address(), receiver, soon());
  connection->send({}, {});
  ASSERT_NE(listener.receiver(0), nullptr);
  EXPECT_TRUE(listener.receiver(0)->wait_frames(1));
}

TEST(TcpAcceptor, WaitsWhenOutOfDescriptors) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  TestReceiver receiver;
  const auto link = make_mortal_link("tcp");
  const auto first = link->connect(listener.address(), receiver, soon());
  ASSERT_NE(listener.receiver(0), nullptr);

  // This socket connects first, but is accepted only after the limit is set.
  RawSocket waiting(listener.address());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  FileDescriptor data(::socket(AF_INET, SOCK_STREAM, 0)),
      control(::socket(AF_INET, SOCK_STREAM, 0));
  ::setrlimit(RLIMIT_NOFILE, &none);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(parse_address(listener.address()).port);
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const Preamble::Token token = random_token();
  for (const auto* fd : {&data, &control}) {
    EXPECT_EQ(::connect(fd->get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const auto preamble =
        encode(Preamble{fd == &data ? SocketRole::kData : SocketRole::kControl, token});
    EXPECT_EQ(::send(fd->get(), preamble.data(), preamble.size(), MSG_NOSIGNAL),
              ssize_t(preamble.size()));
  }
  first->send({}, {});
  EXPECT_TRUE(listener.receiver(0)->wait_frames(1));  // open connections go on
  EXPECT_EQ(listener.count(), 1u);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(listener.receiver(1), nullptr);
}

TEST(TcpLink, NamesAnUnknownHost) {
  TestReceiver receiver;
  const auto link = make_mortal_link("tcp");
  try {
    link->connect("no-such-host.invalid:1", receiver, soon());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("unknown host 'no-such-host.invalid'"));
  }
}

TEST(TcpLink, LooksUpNamesWithinTheDeadline) {
  std::promise<void> test_is_over;
  const auto never_answers = [over = test_is_over.get_future().share()](const Address&, int) {
    over.wait_for(kPatience);
    return NameAnswer{};
  };
  try {
    look_up({"far.example", 1}, Deadline::after(std::chrono::milliseconds(20)), never_answers);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr("'far.example'"));
  }
  test_is_over.set_value();
}

TEST(TcpLink, ConnectsWithinTheDeadline) {
  FileDescriptor full(::socket(AF_INET, SOCK_STREAM, 0));  // never accepts
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof here;
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<sockaddr*>(&here), bytes), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  ::getsockname(full.get(), reinterpret_cast<sockaddr*>(&here), &bytes);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  RawSocket fills_the_queue(address);

  TestReceiver receiver;
  const auto link = make_mortal_link("tcp");
  try {
    link->connect(address, receiver, Deadline::after(std::chrono::milliseconds(100)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr(address));
  }
}

TEST(TcpLink, SaysWhichPortIsInUse) {
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  const std::string port = std::to_string(parse_address(listener.address()).port);
  const auto link = make_mortal_link("tcp");
  try {
    link->listen(listener.address(), [](std::shared_ptr<Connection>) { return nullptr; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "port " + port + " of 127.0.0.1 is in use (another task or another job?)");
  }
}

TEST(TcpLink, SpeaksIpv6) {
  std::unique_ptr<Listener> listener;
  try {
    listener = std::make_unique<Listener>(make_mortal_link("tcp"), "[::1]:0");
  } catch (const Error& error) {
    GTEST_SKIP() << "no IPv6 here: " << error.what();
  }
  EXPECT_THAT(listener->address(), testing::StartsWith("[::1]:"));
  TestReceiver receiver;
  const auto link = make_mortal_link("tcp");
  const auto connection = link->connect(listener->address(), receiver, soon());
  connection->send({}, {});
  EXPECT_TRUE(listener->receiver(0)->wait_frames(1));
}

}  // namespace
}  // namespace paceline
