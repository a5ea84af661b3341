// From names of hosts to socket addresses, within a deadline.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/deadline.h"
#include "net/address.h"

namespace paceline {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// "10.0.0.7:2222", "[::1]:2222".
std::string text_of(const SocketAddress& address);

/// At least one. Throws kNotFound naming the host, kDeadlineExceeded.
std::vector<SocketAddress> look_up(const Address& address, Deadline deadline);

}  // namespace paceline
