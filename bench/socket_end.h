// One end of a bare TCP connection: the simplest loop that sends and receives pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace paceline::bench {

/// One end of a connection. Both ends must be of the same kind. For one thread.
class SocketEnd {
 public:
  virtual ~SocketEnd() = default;
  /// Both return false if the connection has ended.
  virtual bool send(std::span<const std::byte> piece) = 0;
  virtual bool receive(std::span<std::byte> piece) = 0;
};

/// Makes an end of a blocking socket, which it borrows. It makes one system call to send a piece,
/// and one to receive a piece that has arrived entirely.
std::unique_ptr<SocketEnd> make_plain_end(int fd);

/// Makes an end with the system calls that a link needs. Each piece has a header, which gives its
/// length and so its place. As in a link, the end waits in epoll, where a socket is armed for one
/// event, so that no second thread wakes for the next event.
std::unique_ptr<SocketEnd> make_end_with_calls_of_link(int fd);

struct SocketEnds {
  std::unique_ptr<SocketEnd> near, far;
};
/// Makes the ends of two connected sockets under TLS 1.3, with a key and with the links' cipher.
/// One OpenSSL call sends a piece; receiving it takes one call for each record.
SocketEnds make_tls_ends(int near, int far);

}  // namespace paceline::bench
