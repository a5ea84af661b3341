#include "net/shm/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include "paceline/error.h"

namespace paceline {
namespace {

struct AbstractAddress {
  explicit AbstractAddress(std::string_view name) {
    address.sun_family = AF_UNIX;
    // A zero byte before the name makes it abstract.
    const std::size_t taken = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), taken);
    bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + taken);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t bytes = 0;
};

[[noreturn]] void throw_unix_error(const std::string& what) {
  throw Error(ErrorCode::kUnavailable, what + ": " + std::generic_category().message(errno));
}

FileDescriptor new_unix_socket(int flags) {
  FileDescriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) throw_unix_error("no Unix socket");
  return fd;
}

/// The most descriptors that a message may bring: more than are wanted, so that surplus ones arrive
/// here and are closed.
constexpr std::size_t kMostPassed = 4;

std::vector<FileDescriptor> passed_with(msghdr& message) {
  std::vector<FileDescriptor> passed;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= one->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(one) + at, sizeof fd);
      passed.emplace_back(fd);
    }
  }
  return passed;
}

std::optional<ucred> credentials_of(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return {};
  return credentials;
}

}  // namespace

FileDescriptor listen_at_abstract(const std::string& name) {
  FileDescriptor fd = new_unix_socket(SOCK_NONBLOCK);
  const AbstractAddress address(name);
  if (::bind(fd.get(), address.get(), address.bytes) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    throw_unix_error("cannot listen at a Unix socket");
  return fd;
}

std::optional<FileDescriptor> dial_abstract(const std::string& name, Deadline deadline) {
  FileDescriptor fd = new_unix_socket(0);
  // Connecting takes time only if too many callers wait to be accepted.
  const auto left = std::chrono::ceil<std::chrono::microseconds>(deadline.left()).count();
  const timeval patience{std::max<long>(left, 1) / 1'000'000, std::max<long>(left, 1) % 1'000'000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const AbstractAddress address(name);
  if (::connect(fd.get(), address.get(), address.bytes) == 0) return fd;
  if (errno == ECONNREFUSED) return std::nullopt;
  if (errno == EAGAIN) throw Error(ErrorCode::kDeadlineExceeded, "nobody accepts in time");
  throw_unix_error("cannot connect to a Unix socket");
}

bool is_of_this_user(int socket) {
  const std::optional<ucred> peer = credentials_of(socket);
  return peer && peer->uid == ::geteuid();
}

std::string text_of_unix_peer(int socket) {
  const std::optional<ucred> peer = credentials_of(socket);
  return "a task of this host (pid " + std::to_string(peer ? peer->pid : 0) + ")";
}

bool send_message(int socket, std::string_view text, int passed) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof passed)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof passed);
    std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == ssize_t(text.size());
}

UnixMessage receive_message(int socket, std::size_t most_bytes) {
  using Outcome = UnixMessage::Outcome;
  UnixMessage received;
  received.text.resize(most_bytes);
  iovec part{received.text.data(), received.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return received;
  received.text.resize(std::size_t(std::max<ssize_t>(got, 0)));
  std::vector<FileDescriptor> passed = passed_with(message);
  if (got <= 0) {
    received.outcome = Outcome::kClosed;
  } else if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || passed.size() > 1) {
    received.outcome = Outcome::kGarbage;
  } else {
    received.outcome = Outcome::kMessage;
    if (!passed.empty()) received.passed = std::move(passed.front());
  }
  return received;
}

}  // namespace paceline
