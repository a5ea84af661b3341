#include "bench/socket_end.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "net/poll/file_descriptor.h"
#include "net/tcp/tcp_header.h"

namespace paceline::bench {
namespace {

class PlainEnd final : public SocketEnd {
 public:
  explicit PlainEnd(int fd) : fd_(fd) {}

  bool send(std::span<const std::byte> piece) override {
    for (std::size_t at = 0; at < piece.size();) {
      const ssize_t sent = ::send(fd_, piece.data() + at, piece.size() - at, MSG_NOSIGNAL);
      if (sent < 0) return false;
      at += std::size_t(sent);
    }
    return true;
  }

  bool receive(std::span<std::byte> piece) override {
    for (std::size_t at = 0; at < piece.size();) {
      const ssize_t got = ::recv(fd_, piece.data() + at, piece.size() - at, 0);
      if (got <= 0) return false;
      at += std::size_t(got);
    }
    return true;
  }

 private:
  const int fd_;
};

class EndWithCallsOfLink final : public SocketEnd {
 public:
  explicit EndWithCallsOfLink(int fd) : fd_(fd), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    set(EPOLL_CTL_ADD, 0);
  }

  bool send(std::span<const std::byte> piece) override {
    std::array<std::byte, kTcpFramingBytes> header{};
    for (std::size_t at = 0; at < header.size() + piece.size();) {
      const std::size_t of_header = std::min(at, header.size()), of_piece = at - of_header;
      std::array<iovec, 2> parts{
          {{header.data() + of_header, header.size() - of_header},
           {const_cast<std::byte*>(piece.data()) + of_piece, piece.size() - of_piece}}};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) return false;
      if (sent < 0) wait_for_room();
      at += std::size_t(std::max<ssize_t>(sent, 0));
    }
    return true;
  }

  /// As in a link, the socket is armed again only in this call, after the caller's work on the last
  /// piece.
  bool receive(std::span<std::byte> piece) override {
    const std::size_t bytes = kTcpFramingBytes + piece.size();
    for (std::size_t at = 0; at < bytes;) {
      set(EPOLL_CTL_MOD, EPOLLIN);
      epoll_event event;
      if (::epoll_wait(epoll_.get(), &event, 1, -1) < 1) continue;
      ssize_t got = 0;
      while (at < bytes && (got = receive_some(piece, at)) > 0) at += std::size_t(got);
      if (at < bytes && (got == 0 || errno != EAGAIN)) return false;
    }
    return true;
  }

 private:
  void set(int operation, std::uint32_t events) const {
    epoll_event event{.events = events | EPOLLONESHOT, .data = {}};
    ::epoll_ctl(epoll_.get(), operation, fd_, &event);
  }
  void wait_for_room() const {
    pollfd room{fd_, POLLOUT, 0};
    ::poll(&room, 1, -1);
  }
  /// The first read goes to `first_`, because it has the header that says where the piece belongs.
  ssize_t receive_some(std::span<std::byte> piece, std::size_t at) {
    if (at >= kTcpFramingBytes) {
      const std::span<std::byte> rest = piece.subspan(at - kTcpFramingBytes);
      return ::recv(fd_, rest.data(), rest.size(), 0);
    }
    const std::size_t most = std::min(first_.size(), kTcpFramingBytes + piece.size());
    const ssize_t got = ::recv(fd_, first_.data() + at, most - at, 0);
    if (got <= 0) return got;
    const std::size_t held = at + std::size_t(got);
    if (held > kTcpFramingBytes)
      std::memcpy(piece.data(), first_.data() + kTcpFramingBytes, held - kTcpFramingBytes);
    return got;
  }

  const int fd_;
  const FileDescriptor epoll_;
  std::array<std::byte, 8 << 10> first_;
};

}  // namespace

std::unique_ptr<SocketEnd> make_plain_end(int fd) { return std::make_unique<PlainEnd>(fd); }

std::unique_ptr<SocketEnd> make_end_with_calls_of_link(int fd) {
  return std::make_unique<EndWithCallsOfLink>(fd);
}

}  // namespace paceline::bench
