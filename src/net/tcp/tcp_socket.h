// Makes sockets, and sets their options as tcp_socket.cc explains. None of them blocks.
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

/// The path to the other end of a connected socket, as the system measures it.
struct TcpWay {
  Duration round_trip{};  // smoothed
  /// The shortest round trip of the last minutes, which leaves out the time in queues.
  Duration shortest_round_trip{};
  std::uint64_t received = 0;      // bytes, since the connection began
  std::size_t longest_packet = 0;  // bytes that the other end may send at once; 0: not known
  /// True if the round trip is so short that the path must be within one cluster, where hardly any
  /// packets are lost.
  bool is_short() const { return shortest_round_trip <= std::chrono::milliseconds(10); }
};
/// Returns nothing before the first acknowledgement.
std::optional<TcpWay> way_of(int fd);

/// Sets TCP_NODELAY, keep-alive and TCP_USER_TIMEOUT, makes the socket non-blocking, and chooses a
/// better congestion control if there is one. Errors show at the first use.
void set_up_socket(int fd);

/// Chooses a better congestion control, if there is one. Call it again once the round trip proves
/// short: while a queue is full, the round trip looks long.
void take_better_congestion_control(int fd);

/// Limits how many bytes the peer may have sent that this side has not read. 0: as many as the
/// system allows.
void bound_under_way(int fd, std::size_t bytes);

/// Returns the congestion controls that serve a socket better than its `present` one; the caller
/// chooses the first that the system has. All of them slow down only when packets are lost. Every
/// Linux has Reno, and lets everybody use it.
///
/// BBR sends at a rate that it estimates. Within a host, that rate is half of what the host can do.
/// Over a short path, a new burst takes more than its share of a busy link. The workers of a
/// parameter server then fall into step, and leave the link idle while all of them compute. A long
/// path may lose packets, which BBR handles better, so a socket over a long path keeps the system's
/// choice.
std::span<const std::string_view> better_congestion_controls(std::string_view present,
                                                             bool within_host, bool way_is_short);

/// Tries the host's addresses in turn, each once, until one connects. Throws as Link::connect does.
/// `address` is for messages.
FileDescriptor dial(const std::vector<SocketAddress>& targets, const std::string& address,
                    Deadline deadline);

struct ListeningSocket {
  FileDescriptor fd;
  std::string address;  // the address that peers use
};
ListeningSocket listen_at(const Address& address);

/// Returns the address of the other end of a connected socket.
SocketAddress peer_of(int fd);

/// True if both ends of a connected socket are on this host, so that nobody else can overhear it.
bool stays_on_host(int fd);

/// Makes the error of a failed read or write; it names `peer`.
Error error_of_socket(const std::string& peer, int error_number);

}  // namespace paceline
