// Sleeping until a peer writes or reads, and waking the peer.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/deadline.h"
#include "net/shm/shm_ring.h"

namespace paceline {

/// One thread of each side sleeps for the connection. This thread announces the sleep in its own
/// memory, checks once more for data or room, and then sleeps on a word in the peer's memory. A
/// peer that has written or read looks at the announcement and wakes the sleeper. While nobody
/// sleeps, neither side calls the system. The loads and stores involved are sequentially
/// consistent: either the waker sees the sleeper, or the sleeper sees the change.
///
/// A hostile peer owns the word, so it can make the system move the sleeper to another word, where
/// no wake-up reaches the sleeper. Therefore no sleep lasts longer than kLongestSleep.
class ShmSleep {
 public:
  enum For : std::uint32_t { kNothing = 0, kData = 1, kRoom = 2 };
  static constexpr Duration kLongestSleep = std::chrono::milliseconds(100);

  explicit ShmSleep(const ShmPair& pair) : pair_(pair) {}
  /// The three calls of the thread that sleeps. It calls announce with the reasons for which it
  /// waits, and checks once more whether there is something to do. Then it calls sleep, which
  /// returns at once if the peer has woken the thread since announce(), or if wake_here() was
  /// called since wakes() was read. Then it calls awake.
  void announce(unsigned reasons);
  void sleep(std::uint32_t wakes_seen);
  void awake();
  std::uint32_t wakes() const { return local_wakes_.load(); }

  /// Wakes the sleeping thread of this side; any other thread may call it. A hostile peer can make
  /// the wake-up miss. The sleeper then wakes by itself, after at most kLongestSleep.
  void wake_here();
  /// Wakes the peer's thread if it sleeps for `reason`. Any thread of this side may call it.
  void wake_peer(For reason) {
    const std::uint32_t sleeps = pair_.theirs().sleeps.load();
    if ((sleeps & reason) != 0 && woken_.load() != sleeps) wake_sleeper(sleeps);
  }

 private:
  void wake_sleeper(std::uint32_t sleeps);

  const ShmPair& pair_;
  std::uint32_t number_ = 0;      // four times the number of this side's last sleep
  std::uint32_t wakes_seen_ = 0;  // the peer's `wakes` at the announcement
  std::atomic<std::uint32_t> local_wakes_{0};
  std::atomic<bool> sleeping_{false};
  /// The peer's `sleeps` when this side last woke the peer, so that it wakes the peer once per
  /// sleep.
  std::atomic<std::uint32_t> woken_{0};
};

}  // namespace paceline
