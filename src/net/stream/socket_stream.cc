#include "net/stream/socket_stream.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace paceline {
namespace {

// Copying up to this many bytes into one place takes less time than the system takes for a list of
// parts.
constexpr std::size_t kGatheredBytes = 4 << 10;

}  // namespace

std::ptrdiff_t SocketStream::read(std::span<const iovec> parts) {
  return ::readv(fd_, parts.data(), int(parts.size()));
}

std::ptrdiff_t SocketStream::write(std::span<const iovec> parts) {
  std::array<std::byte, kGatheredBytes> gathered;
  std::size_t bytes = 0;
  for (const iovec& part : parts) {
    if (part.iov_len > gathered.size() - bytes) {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = parts.size();
      return ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    std::memcpy(gathered.data() + bytes, part.iov_base, part.iov_len);
    bytes += part.iov_len;
  }
  return ::send(fd_, gathered.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void SocketStream::shut_writing() { ::shutdown(fd_, SHUT_WR); }

}  // namespace paceline
