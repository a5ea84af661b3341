// Finds the socket addresses of a host's name within a deadline.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/deadline.h"

namespace paceline {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Returns a text such as "10.0.0.7:2222" or "[::1]:2222".
std::string text_of(const SocketAddress& address);

/// The answer of a name service: a getaddrinfo status, and addresses if it is 0.
struct NameAnswer {
  int status = 0;
  std::vector<SocketAddress> addresses;
};
/// Asks for the addresses of a host, and may block for any time. `flags` are the ai_flags of
/// addrinfo.
using NameService = std::function<NameAnswer(const Address& address, int flags)>;
NameAnswer ask_system(const Address& address, int flags);

/// Returns at least one address. Numeric addresses need no waiting. Throws kNotFound naming the
/// host, and kDeadlineExceeded.
std::vector<SocketAddress> look_up(const Address& address, Deadline deadline,
                                   const NameService& service = ask_system);

}  // namespace paceline
