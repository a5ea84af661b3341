// How two tasks that have found each other over a Unix socket exchange their memories. Format:
// docs/wire.md.
#pragma once

#include <memory>
#include <optional>

#include "base/deadline.h"
#include "net/shm/shm_ring.h"
#include "net/tcp/offer.h"

namespace paceline {

/// Says hello with the offered token and this side's memory. False when the socket takes nothing.
bool introduce(int socket, const Preamble::Token& token, const SharedMemory& memory);

/// The peer's memory; null when its hello has not arrived yet. Throws kDataLoss when it is none,
/// has another token, or a memory that is not sealed or of another size; kUnavailable when it
/// closed.
std::shared_ptr<const SharedMemory> take_introduction(int socket, const Preamble::Token& token);

struct ShmReached {
  FileDescriptor socket;  // blocking
  std::shared_ptr<SharedMemory> own;
  std::shared_ptr<const SharedMemory> peers;
};
/// The caller's side. None: the name cannot be reached from here, which is another host, or another
/// network namespace. Throws what Link::connect throws.
std::optional<ShmReached> reach(const Offer& offer, const std::string& address, Deadline deadline);

}  // namespace paceline
