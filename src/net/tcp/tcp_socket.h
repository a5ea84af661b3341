// Makes sockets, and sets them as docs/architecture.md says. None of them blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"

namespace paceline {

/// Sets TCP_NODELAY, keep-alive and TCP_USER_TIMEOUT, makes the socket non-blocking, and takes a
/// better congestion control, if there is one. Errors are left to the first use.
void set_up_socket(int fd);

/// Returns the congestion controls that serve a socket better than its `present` one; the first
/// that the system has is to be taken. All of them slow down for losses alone; every Linux has
/// Reno, and lets everybody use it. BBR sends at a rate that it estimates. Within a host that is
/// half of what the host can do. Over a short way a new burst takes more of a busy link than its
/// share, so that the workers of a parameter server fall into step, and leave the link idle while
/// all of them compute. A long way may lose packets, which BBR bears better, so it keeps what the
/// system chose.
std::vector<std::string_view> better_congestion_controls(std::string_view present, bool within_host,
                                                         Duration round_trip);

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

/// True when both ends of a connected socket are on this host: nobody else can listen.
bool stays_on_host(int fd);

/// Returns the round-trip time that the system has measured on a connected socket, smoothed; none
/// before the first acknowledgement.
std::optional<Duration> round_trip_of(int fd);

/// Makes an error of a failed read or write, which names `peer`.
Error error_of_socket(const std::string& peer, int error_number);

}  // namespace paceline
