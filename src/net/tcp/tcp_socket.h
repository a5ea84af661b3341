// Makes sockets, and sets them as tcp_socket.cc says. None of them blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"

namespace paceline {

/// The way to the other end of a connected socket, as the system has measured it.
struct TcpWay {
  Duration round_trip{};           // smoothed
  Duration shortest_round_trip{};  // of the last minutes: without the queues that come and go
  std::uint64_t received = 0;      // bytes
  /// There and back in so little time are hosts of one cluster, which lose hardly anything.
  bool is_short() const { return shortest_round_trip <= std::chrono::milliseconds(10); }
};
/// Returns nothing before the first acknowledgement.
std::optional<TcpWay> way_of(int fd);

/// Sets TCP_NODELAY, keep-alive and TCP_USER_TIMEOUT, makes the socket non-blocking, and takes a
/// better congestion control, if there is one. Errors are left to the first use.
void set_up_socket(int fd);

/// Takes a better congestion control, if there is one. Is to be called again when a way has turned
/// out to be short: one that leads through a full queue looks long at first.
void take_better_congestion_control(int fd);

/// Lets the peer have at most so many bytes under way that have not been read here; 0: as many as
/// the system gives.
void bound_under_way(int fd, std::size_t bytes);

/// Returns the congestion controls that serve a socket better than its `present` one; the first
/// that the system has is to be taken. All of them slow down for losses alone; every Linux has
/// Reno, and lets everybody use it. BBR sends at a rate that it estimates. Within a host that is
/// half of what the host can do. Over a short way a new burst takes more of a busy link than its
/// share, so that the workers of a parameter server fall into step, and leave the link idle while
/// all of them compute. A long way may lose packets, which BBR bears better, so it keeps what the
/// system chose.
std::span<const std::string_view> better_congestion_controls(std::string_view present,
                                                             bool within_host, bool way_is_short);

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

/// Makes an error of a failed read or write, which names `peer`.
Error error_of_socket(const std::string& peer, int error_number);

}  // namespace paceline
