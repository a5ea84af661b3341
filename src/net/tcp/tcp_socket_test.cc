#include "net/tcp/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>

#include "net/poll/poll_until.h"

namespace paceline {
namespace {

std::string congestion_control_of(const FileDescriptor& socket) {
  std::array<char, 16> name{};
  socklen_t bytes = name.size();
  ::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes);
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
  EXPECT_EQ(congestion_control_of(near), "reno");
  EXPECT_EQ(congestion_control_of(far), "reno");
}

TEST(TcpSocket, BbrGivesWayToCubicOverAShortWayOnly) {
  using Names = std::vector<std::string_view>;
  const Duration short_way = std::chrono::microseconds(200), long_way = std::chrono::seconds(1);
  EXPECT_EQ(better_congestion_controls("bbr", false, short_way), (Names{"cubic", "reno"}));
  EXPECT_EQ(better_congestion_controls("bbr2", false, short_way), (Names{"cubic", "reno"}));
  EXPECT_EQ(better_congestion_controls("bbr", false, long_way), Names{});
  EXPECT_EQ(better_congestion_controls("dctcp", false, short_way), Names{});
  EXPECT_EQ(better_congestion_controls("cubic", true, short_way), Names{"reno"});
}

TEST(TcpSocket, TheSystemKnowsTheRoundTripOfAConnection) {
  const Deadline soon = Deadline::after(std::chrono::seconds(10));
  const ListeningSocket listening = listen_at({"127.0.0.1", 0});
  const FileDescriptor near =
      dial(look_up(parse_address(listening.address), soon), listening.address, soon);
  const std::optional<Duration> round_trip = round_trip_of(near.get());
  ASSERT_TRUE(round_trip) << "the handshake was acknowledged";
  EXPECT_GT(*round_trip, Duration(0));
  EXPECT_LT(*round_trip, std::chrono::seconds(10));
  EXPECT_EQ(round_trip_of(listening.fd.get()), std::nullopt);
  EXPECT_EQ(round_trip_of(-1), std::nullopt);
}

TEST(TcpSocket, OfAPeerThatHasGoneIsSetUpAllTheSame) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  const std::string before = congestion_control_of(socket);
  EXPECT_NO_THROW(set_up_socket(socket.get()));
  EXPECT_EQ(congestion_control_of(socket), before);
}

}  // namespace
}  // namespace paceline
