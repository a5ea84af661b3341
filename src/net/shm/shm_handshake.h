// The exchange of memories between two tasks that have found each other over a Unix socket.
// docs/wire.md has the format.
#pragma once

#include <memory>
#include <optional>

#include "base/deadline.h"
#include "net/accept/offer.h"
#include "net/shm/shm_ring.h"

namespace paceline {

/// Sends a hello with the offered token and this side's memory. Returns false if the socket takes
/// nothing.
bool introduce(int socket, const Preamble::Token& token, const SharedMemory& memory);

/// Returns the peer's memory; null if its hello has not arrived yet. Throws kDataLoss if the
/// message is no hello, has another token, or brings a memory that is unsealed or of another size.
/// Throws kUnavailable if the peer has closed.
std::shared_ptr<const SharedMemory> take_introduction(int socket, const Preamble::Token& token);

struct ShmReached {
  FileDescriptor socket;  // reads from it block
  std::shared_ptr<SharedMemory> own;
  std::shared_ptr<const SharedMemory> peers;
};
/// Connects to the task that made the offer. Returns nullopt if the offer's name cannot be reached
/// from here, or belongs to another user. In the first case, the task is on another host or in
/// another network namespace. Throws as Link::connect does.
std::optional<ShmReached> reach(const Offer& offer, const std::string& address, Deadline deadline);

}  // namespace paceline
