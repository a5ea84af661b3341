// The Unix socket of a connection: memories that are shared go over it, and its closing is the
// notice that the peer is gone.
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
/// No more of them wait for their place in the ring at a time.
constexpr std::size_t kMostSharedWaiting = 64;

/// Thread-safe.
class ShmSocket {
 public:
  ShmSocket(std::shared_ptr<Poller> poller, FileDescriptor socket);

  /// Takes in what has arrived, and waits for more. False when the peer is gone. Throws kDataLoss.
  bool take_in(std::shared_ptr<Watcher> watcher);
  /// Throws kUnavailable when the peer is gone.
  void pass(const SharedMemory& memory);
  /// The next, in order. Throws kDataLoss when none has arrived.
  std::shared_ptr<const SharedMemory> take();
  /// The peer is to see that this side is gone.
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
