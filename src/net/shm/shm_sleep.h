// Sleeping until a peer writes or reads, and waking a peer that does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/deadline.h"
#include "net/shm/shm_ring.h"

namespace paceline {

/// One thread of each side sleeps for it. It says so in its own memory, looks once more, and sleeps
/// on a word in the peer's memory; a peer that has written or read looks there and wakes it. While
/// nobody sleeps neither side calls the system. All operations that this needs are sequentially
/// consistent: either the waker sees the sleeper, or the sleeper the change. The word is the
/// peer's, who can have the system move a sleeper to another one, where no waking reaches it: so no
/// sleep lasts longer than kLongestSleep.
class ShmSleep {
 public:
  enum For : std::uint32_t { kNothing = 0, kData = 1, kRoom = 2 };
  static constexpr Duration kLongestSleep = std::chrono::milliseconds(100);

  explicit ShmSleep(const ShmPair& pair) : pair_(pair) {}
  /// The sleeping thread: says what it waits for; then looks once more; then sleeps, unless it was
  /// woken since `announce`, or by this side since `wakes` was read, and not for long; then says
  /// that it is awake.
  void announce(unsigned reasons);
  void sleep(std::uint32_t wakes_seen);
  void awake();
  std::uint32_t wakes() const { return local_wakes_.load(); }

  /// Any thread of this side: wakes the thread of this side. A hostile peer can make it miss: then
  /// that wakes by itself, kLongestSleep later at most.
  void wake_here();
  /// Any thread of this side: wakes the peer's thread when it sleeps for `reason`.
  void wake_peer(For reason) {
    const std::uint32_t sleeps = pair_.theirs().sleeps.load();
    if ((sleeps & reason) != 0 && woken_.load() != sleeps) wake_sleeper(sleeps);
  }

 private:
  void wake_sleeper(std::uint32_t sleeps);

  const ShmPair& pair_;
  std::uint32_t number_ = 0;      // of this side's sleep
  std::uint32_t wakes_seen_ = 0;  // of the peer
  std::atomic<std::uint32_t> local_wakes_{0};
  std::atomic<bool> sleeping_{false};
  std::atomic<std::uint32_t> woken_{0};  // the peer's sleep that was ended already
};

}  // namespace paceline
