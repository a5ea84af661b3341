// Two tasks that have found each other over a Unix socket exchange their memories. The format is in
// docs/wire.md.
#pragma once

#include <memory>
#include <optional>

#include "base/deadline.h"
#include "net/accept/offer.h"
#include "net/shm/shm_ring.h"

namespace paceline {

/// Says hello with the offered token and this side's memory. Returns false when the socket takes
/// nothing.
bool introduce(int socket, const Preamble::Token& token, const SharedMemory& memory);

/// Returns the peer's memory, or null when its hello has not arrived yet. Throws kDataLoss when
/// what arrived is no hello, has another token, or a memory that is not sealed or has another size,
/// and kUnavailable when the peer has closed.
std::shared_ptr<const SharedMemory> take_introduction(int socket, const Preamble::Token& token);

struct ShmReached {
  FileDescriptor socket;  // reading it blocks
  std::shared_ptr<SharedMemory> own;
  std::shared_ptr<const SharedMemory> peers;
};
/// Connects to the task that made the offer. Returns nothing when its name cannot be reached from
/// here, which is another host or another network namespace. Throws what Link::connect throws.
std::optional<ShmReached> reach(const Offer& offer, const std::string& address, Deadline deadline);

}  // namespace paceline
