// The Unix socket of a connection. Shared memories are passed over it. If the peer's end of the
// socket closes, the peer has gone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/ring.h"
#include "net/memory/shared_memory.h"
#include "net/poll/poller.h"

namespace paceline {

/// The message that carries a descriptor.
constexpr std::string_view kSharedMessage = "M";
/// The most descriptors that wait for their place in the ring at a time.
constexpr std::size_t kMostSharedWaiting = 64;

/// Thread-safe.
class ShmSocket {
 public:
  ShmSocket(std::shared_ptr<Poller> poller, FileDescriptor socket);

  /// Takes the descriptors that have arrived, and lets `watcher` wait for more. Returns false if
  /// the peer has gone. Throws kDataLoss for a message of another kind, and if more than
  /// kMostSharedWaiting descriptors wait.
  bool take_in(std::shared_ptr<Watcher> watcher);
  /// Passes the memory's descriptor to the peer. Throws kUnavailable if the socket does not take
  /// it, as when the peer has gone.
  void pass(const SharedMemory& memory);
  /// Returns the memory that was passed earliest and not taken. Throws kDataLoss if none has
  /// arrived, and as SharedMemory::open does.
  std::shared_ptr<const SharedMemory> take();
  /// Makes the peer see that this side has gone.
  void shut_down();
  void close();

 private:
  bool take_in_locked();

  std::mutex mutex_;
  std::optional<Watch> socket_;
  const int fd_;
  Ring<FileDescriptor> waiting_;
};

}  // namespace paceline
