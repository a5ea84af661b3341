// TCP_USER_TIMEOUT and keep-alive detect links that are cut. Heartbeats detect stopped processes,
// which look alive to TCP. docs/performance-notes.md says why a socket uses Reno or Cubic ("TCP is
// not paced"), and docs/wire.md lists all options.
#include "net/tcp/tcp_socket.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>

#include "net/connection_end.h"
#include "net/poll/poll_until.h"

namespace paceline {
namespace {

constexpr int kUserTimeoutMs = 5000;
constexpr Duration kLookUpToListen = std::chrono::seconds(5);

std::string words_of(int error_number) { return std::generic_category().message(error_number); }

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

SocketAddress near_end_of(int fd) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  ::getsockname(fd, address.get(), &address.bytes);
  return address;
}

FileDescriptor new_socket(int family) {
  FileDescriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw Error(ErrorCode::kUnavailable, "no socket: " + words_of(errno));
  return fd;
}

std::string congestion_control_of(int fd) {
  std::array<char, 16> name{};  // the longest name that Linux has
  socklen_t bytes = name.size();
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) != 0) return "";
  return {name.data(), ::strnlen(name.data(), name.size())};
}

/// Returns 0 if the socket is connected, ETIME if the deadline passed, or an error number.
int finish_connecting(int fd, Deadline deadline) {
  if (const int waited = poll_one_until(fd, POLLOUT, deadline); waited != 0) return waited;
  int error_number = 0;
  socklen_t bytes = sizeof error_number;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &bytes);
  return error_number;
}

/// A socket that connects to a free port of its own host may get that very port, and so reach
/// itself.
bool reached_itself(int fd) { return text_of(near_end_of(fd)) == text_of(peer_of(fd)); }

int try_one(const SocketAddress& target, Deadline deadline, FileDescriptor& connected) {
  FileDescriptor fd = new_socket(target.storage.ss_family);
  int error_number = ::connect(fd.get(), target.get(), target.bytes) == 0 ? 0 : errno;
  if (error_number == EINPROGRESS) error_number = finish_connecting(fd.get(), deadline);
  if (error_number == 0 && reached_itself(fd.get())) error_number = ECONNREFUSED;
  if (error_number == 0) connected = std::move(fd);
  return error_number;
}

Error error_of_dialling(const std::string& address, int error_number) {
  if (error_number == ECONNREFUSED)
    return {ErrorCode::kUnavailable, "nobody listens at " + address};
  if (error_number == ETIME) return error_of_slow_dialling(address);
  return {ErrorCode::kUnavailable, "cannot connect to " + address + ": " + words_of(error_number)};
}

Error error_of_binding(const Address& address, int error_number) {
  const std::string place = "port " + std::to_string(address.port) + " of " + address.host;
  if (error_number == EADDRINUSE)
    return {ErrorCode::kUnavailable, place + " is in use (another task or another job?)"};
  if (error_number == EADDRNOTAVAIL)
    return {ErrorCode::kNotFound,
            "cannot listen at " + text_of(address) + ": this machine has no such address"};
  return {ErrorCode::kUnavailable, "cannot listen at " + place + ": " + words_of(error_number)};
}

std::string own_host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::uint16_t port_of(int fd) {
  const std::string text = text_of(near_end_of(fd));
  return parse_address(text).port;
}

}  // namespace

void set_up_socket(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  take_better_congestion_control(fd);
}

void take_better_congestion_control(int fd) {
  const std::optional<TcpWay> way = way_of(fd);
  for (const std::string_view name : better_congestion_controls(
           congestion_control_of(fd), stays_on_host(fd), way && way->is_short()))
    if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), name.size()) == 0) return;
}

// If bytes is 0, only the socket's memory limits the bytes under way.
void bound_under_way(int fd, std::size_t bytes) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, int(bytes == 0 ? kMost : std::min(bytes, kMost)));
}

std::span<const std::string_view> better_congestion_controls(std::string_view present,
                                                             bool within_host, bool way_is_short) {
  static constexpr std::string_view kByLosses[] = {"cubic", "reno"};
  if (within_host) return std::span(kByLosses).last(1);
  if (!present.starts_with("bbr") || !way_is_short) return {};
  return kByLosses;
}

FileDescriptor dial(const std::vector<SocketAddress>& targets, const std::string& address,
                    Deadline deadline) {
  int error_number = ECONNREFUSED;
  FileDescriptor connected;
  for (const SocketAddress& target : targets) {
    error_number = try_one(target, deadline, connected);
    if (connected) {
      set_up_socket(connected.get());
      return connected;
    }
  }
  throw error_of_dialling(address, error_number);
}

ListeningSocket listen_at(const Address& address) {
  const SocketAddress place = look_up(address, Deadline::after(kLookUpToListen)).front();
  FileDescriptor fd = new_socket(place.storage.ss_family);
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), place.get(), place.bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    throw error_of_binding(address, errno);
  const bool any = address.host == "0.0.0.0" || address.host == "::";
  const Address bound{any ? own_host_name() : address.host, port_of(fd.get())};
  return {std::move(fd), text_of(bound)};
}

SocketAddress peer_of(int fd) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  ::getpeername(fd, address.get(), &address.bytes);
  return address;
}

bool stays_on_host(int fd) {
  return is_within_host(text_of(near_end_of(fd)), text_of(peer_of(fd)));
}

std::optional<TcpWay> way_of(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  if (info.tcpi_rtt == 0) return std::nullopt;
  const bool knows_shortest = info.tcpi_min_rtt != 0 && info.tcpi_min_rtt < info.tcpi_rtt;
  return TcpWay{std::chrono::microseconds(info.tcpi_rtt),
                std::chrono::microseconds(knows_shortest ? info.tcpi_min_rtt : info.tcpi_rtt),
                info.tcpi_bytes_received, info.tcpi_advmss};
}

Error error_of_socket(const std::string& peer, int error_number) {
  if (error_number == ECONNRESET || error_number == EPIPE)
    return {ErrorCode::kUnavailable,
            peer + " closed the connection or died (" + words_of(error_number) + ")"};
  if (error_number == ETIMEDOUT)
    return {ErrorCode::kUnavailable,
            peer + " answers no more: its host is down or the network is cut"};
  return {ErrorCode::kUnavailable, "the connection to " + peer + ": " + words_of(error_number)};
}

}  // namespace paceline
