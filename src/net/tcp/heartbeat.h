// The control socket of a connection: a byte now and then says that the process runs. A stopped
// process looks alive to TCP.
#pragma once

#include "net/file_descriptor.h"

namespace paceline {

/// Times are counted in ticks, so that a process that was itself stopped, or is late, does not take
/// its peers for dead: it hears them before it judges. Not thread-safe.
class Heartbeat {
 public:
  static constexpr int kTicksOfDeath = 16;
  static constexpr int kTicksPerBeat = 4;
  enum class Pulse { kAlive, kSilent, kGarbage };

  explicit Heartbeat(FileDescriptor control) : control_(std::move(control)) {}
  /// To be called kTicksOfDeath times in the time after which a silent peer is dead.
  Pulse tick();

 private:
  Pulse listen();

  FileDescriptor control_;
  int ticks_ = 0;
  int silent_ticks_ = 0;
};

}  // namespace paceline
