// One end of a bare TCP connection: the barest loop that sends and receives pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace paceline::bench {

/// Both ends of a connection are of one kind. One thread.
class SocketEnd {
 public:
  virtual ~SocketEnd() = default;
  /// Both return false when the connection has ended.
  virtual bool send(std::span<const std::byte> piece) = 0;
  virtual bool receive(std::span<std::byte> piece) = 0;
};

/// Makes an end of a blocking socket, which it borrows. It makes one call to send a piece and one
/// to receive it, if all of it has arrived.
std::unique_ptr<SocketEnd> make_plain_end(int fd);

/// Makes an end with the system calls that a link cannot do without: a header in front of the
/// piece, which tells how long it is and so where it goes; waiting for many sockets, armed for one
/// event, so that no second thread wakes for the next.
std::unique_ptr<SocketEnd> make_end_with_calls_of_link(int fd);

struct SocketEnds {
  std::unique_ptr<SocketEnd> near, far;
};
/// Makes the ends of two connected sockets under TLS 1.3, by a key and with the cipher of links:
/// each piece is one call of OpenSSL's to send it, and as many as it has records to receive it.
SocketEnds make_tls_ends(int near, int far);

}  // namespace paceline::bench
