#include "net/tcp/tcp_socket.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <array>

#include "net/heartbeat_thread.h"
#include "net/poll/poll_until.h"
#include "net/tcp/tcp_connection.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

std::string congestion_control_of(int socket) {
  std::array<char, 16> name{};
  socklen_t bytes = name.size();
  ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes);
  return name.data();
}

TEST(TcpSocket, WithinOneHostIsPacedByNobody) {
  const Deadline soon = Deadline::after(std::chrono::seconds(10));
  const ListeningSocket listening = listen_at({"127.0.0.1", 0});
  const FileDescriptor near =
      dial(look_up(parse_address(listening.address), soon), listening.address, soon);
  ASSERT_TRUE(wait_to_read(listening.fd.get(), soon));
  const FileDescriptor far(::accept(listening.fd.get(), nullptr, nullptr));
  set_up_socket(far.get());
  EXPECT_EQ(congestion_control_of(near.get()), "reno");
  EXPECT_EQ(congestion_control_of(far.get()), "reno");
}

TEST(TcpSocket, BbrGivesWayToCubicOverAShortWayOnly) {
  using Names = std::vector<std::string_view>;
  constexpr bool short_way = true, long_way = false;
  const auto better = [](std::string_view present, bool within_host, bool way_is_short) {
    const auto names = better_congestion_controls(present, within_host, way_is_short);
    return Names(names.begin(), names.end());
  };
  EXPECT_EQ(better("bbr", false, short_way), (Names{"cubic", "reno"}));
  EXPECT_EQ(better("bbr2", false, short_way), (Names{"cubic", "reno"}));
  EXPECT_EQ(better("bbr", false, long_way), Names{});
  EXPECT_EQ(better("dctcp", false, short_way), Names{});
  EXPECT_EQ(better("cubic", true, short_way), Names{"reno"});
}

// When the connection begins, a full queue may make the round trip look long. So a later tick
// chooses again.
TEST(TcpSocket, TakesABetterCongestionControlOnceItsWayHasTurnedOutToBeShort) {
  LinkOptions options;
  options.ticks = std::make_shared<ManualTicks>();
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  TestReceiver receiver;
  const auto link = make_link("tcp", options);
  const auto connection = link->connect(listener.address(), receiver, soon());
  const int socket = dynamic_cast<TcpConnection&>(*connection).fd();
  const std::string_view other = "cubic";
  if (::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, other.data(), other.size()) != 0)
    GTEST_SKIP() << "this system gives no other congestion control than Reno";
  ASSERT_EQ(congestion_control_of(socket), other);
  options.ticks->tick();
  EXPECT_EQ(congestion_control_of(socket), "reno");
}

TEST(TcpSocket, LetsSoMuchBeUnderWayAsItsConnectionIsTold) {
  LinkOptions options;
  options.ticks = std::make_shared<ManualTicks>();
  Listener listener(make_mortal_link("tcp"), "127.0.0.1:0");
  TestReceiver receiver;
  const auto link = make_link("tcp", options);
  const auto connection = link->connect(listener.address(), receiver, soon());
  auto& tcp = dynamic_cast<TcpConnection&>(*connection);
  const auto most_under_way = [&] {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    ::getsockopt(tcp.fd(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, &size);
    return bytes;
  };
  const int before = most_under_way();
  tcp.bound_incoming(100'000);
  EXPECT_EQ(most_under_way(), before) << "it does not know yet that its way is short";
  options.ticks->tick();
  EXPECT_EQ(most_under_way(), before) << "nothing is divided";
  tcp.bound_incoming(100'000);
  EXPECT_EQ(most_under_way(), 100'000);
  tcp.bound_incoming(0);
  EXPECT_GE(most_under_way(), before);
}

TEST(TcpSocket, TheSystemKnowsTheRoundTripOfAConnection) {
  const Deadline soon = Deadline::after(std::chrono::seconds(10));
  const ListeningSocket listening = listen_at({"127.0.0.1", 0});
  const FileDescriptor near =
      dial(look_up(parse_address(listening.address), soon), listening.address, soon);
  const std::optional<TcpWay> way = way_of(near.get());
  ASSERT_TRUE(way) << "the handshake was acknowledged";
  EXPECT_GT(way->round_trip, Duration(0));
  EXPECT_GT(way->shortest_round_trip, Duration(0));
  EXPECT_LE(way->shortest_round_trip, way->round_trip);
  EXPECT_LT(way->round_trip, std::chrono::seconds(10));
  EXPECT_FALSE(way_of(listening.fd.get()));
  EXPECT_FALSE(way_of(-1));
}

TEST(TcpSocket, OfAPeerThatHasGoneIsSetUpAllTheSame) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  const std::string before = congestion_control_of(socket.get());
  EXPECT_NO_THROW(set_up_socket(socket.get()));
  EXPECT_EQ(congestion_control_of(socket.get()), before);
}

}  // namespace
}  // namespace paceline
