// Sockets, made and set as docs/architecture.md wants them. All are non-blocking.
#pragma once

#include <string>

#include "base/deadline.h"
#include "net/poll/file_descriptor.h"
#include "net/tcp/name_lookup.h"
#include "paceline/error.h"

namespace paceline {

/// TCP_NODELAY, keep-alive, TCP_USER_TIMEOUT, non-blocking; within one host nothing is paced.
/// Errors are left to the first use.
void set_up_socket(int fd);

/// One try at each of the host's addresses. Throws what Link::connect throws. `address` is for
/// messages.
FileDescriptor dial(const std::vector<SocketAddress>& targets, const std::string& address,
                    Deadline deadline);

struct ListeningSocket {
  FileDescriptor fd;
  std::string address;  // for peers
};
ListeningSocket listen_at(const Address& address);

/// False when nothing arrived before the deadline.
bool wait_to_read(int fd, Deadline deadline);

/// The other end of a connected socket.
SocketAddress peer_of(int fd);

/// The meaning of a failed read or write; names `peer`.
Error error_of_silence(const std::string& address);  // while connecting
Error error_of_socket(const std::string& peer, int error_number);

}  // namespace paceline
