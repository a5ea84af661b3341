// Makes sockets, and sets them as docs/architecture.md says. None of them blocks.
#pragma once

#include <optional>
#include <string>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"

namespace paceline {

/// Sets TCP_NODELAY, keep-alive and TCP_USER_TIMEOUT, makes the socket non-blocking, and takes a
/// congestion control that does not pace within one host. Errors are left to the first use.
void set_up_socket(int fd);

/// Tries each of the host's addresses once. Throws what Link::connect throws. `address` is for
/// messages.
FileDescriptor dial(const std::vector<SocketAddress>& targets, const std::string& address,
                    Deadline deadline);

struct ListeningSocket {
  FileDescriptor fd;
  std::string address;  // for peers
};
ListeningSocket listen_at(const Address& address);

/// Returns the address of the other end of a connected socket.
SocketAddress peer_of(int fd);

/// Returns the round-trip time that the system has measured on a connected socket, smoothed; none
/// before the first acknowledgement.
std::optional<Duration> round_trip_of(int fd);

/// Makes an error of a failed read or write, which names `peer`.
Error error_of_socket(const std::string& peer, int error_number);

}  // namespace paceline
