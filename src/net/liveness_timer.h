// Finds out whether a peer has been silent for too long.
#pragma once

#include <string>

#include "base/clock.h"

namespace paceline {

/// Counts time in ticks; the owner listens before each tick. If the owner's own process was stopped
/// or late, that time counts as one tick, and the owner reads what arrived meanwhile before it
/// judges whether the peer lives. Not thread-safe.
class LivenessTimer {
 public:
  static constexpr int kTicksOfDeath = 16;
  static constexpr int kTicksPerBeat = 4;

  /// Returns true if the peer is dead. Call it kTicksOfDeath times within the time after which a
  /// silent peer is dead. `heard` says that something has arrived since the last call.
  bool tick(bool heard) {
    silent_ticks_ = heard ? 0 : silent_ticks_ + 1;
    return silent_ticks_ >= kTicksOfDeath;
  }
  /// True if a heartbeat is due.
  bool beat_is_due() { return ticks_++ % kTicksPerBeat == 0; }

 private:
  unsigned ticks_ = 0;
  int silent_ticks_ = 0;
};

/// Returns a text such as "worker:1 has stopped: no heartbeat for 4.0 s".
inline std::string text_of_silence(const std::string& peer, Duration dead_after) {
  const std::string seconds = std::to_string(std::chrono::duration<double>(dead_after).count());
  return peer + " has stopped: no heartbeat for " + seconds.substr(0, seconds.find('.') + 2) + " s";
}

}  // namespace paceline
