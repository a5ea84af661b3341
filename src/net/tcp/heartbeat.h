// The control socket of a connection, over which a byte now and then says that the process runs: a
// stopped process looks alive to TCP.
#pragma once

#include "base/clock.h"
#include "net/liveness_timer.h"
#include "net/stream/byte_stream.h"

namespace paceline {

/// Not thread-safe.
class Heartbeat {
 public:
  enum class Pulse { kAlive, kSilent, kGarbage };

  explicit Heartbeat(StreamSocket control) : control_(std::move(control)) {}
  /// Sends, listens and judges (LivenessTimer::tick). `heard` tells that data arrived, which is as
  /// good as a beat.
  Pulse tick(bool heard);
  /// True when the other host has lately acknowledged what was sent: it can be reached, whatever
  /// the process does. False when bytes wait for an acknowledgement, and none has come within
  /// `lately`.
  bool is_acknowledged(Duration lately) const;

 private:
  /// Reads what has arrived: nothing, beats or garbage.
  enum class Sound { kNothing, kBeats, kGarbage };
  Sound listen();

  StreamSocket control_;
  LivenessTimer silence_;
};

}  // namespace paceline
