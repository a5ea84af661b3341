// Plays bytes as a script of several peers of a ps: they connect, send frames, share memory, stop
// reading and vanish, and time passes. The PsDriver is real, but the link is not. The only other
// thread is the one that saves.
//
// The script is a sequence of acts. Its first byte has the kind of act in the upper four bits and
// the peer in the lower two; the act's arguments follow. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "net/frame.h"
#include "params/wire/message.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

/// The outcome of a script.
struct PsEnd {
  std::int64_t applied = 0;    // steps
  std::set<MessageType> said;  // by the ps, to anybody
  std::string warnings;        // lines
};

/// Plays a script to its end. An exception means that the ps has a bug.
PsEnd play_ps_script(Bytes script);

/// Writes scripts. Peers are 0 to 3; a peer is connected before its first act.
class PsScript {
 public:
  /// Sends any frame. Offset and step are cut to 32 bits here, and sign-extended when the script is
  /// played.
  PsScript& frame(int peer, MessageType type, const std::vector<std::byte>& payload,
                  FrameHeader header = {});
  /// Shares memory of this many bytes.
  PsScript& share(int peer, std::uint16_t bytes);
  /// Between stop_reading and read_on, the ps's messages to this peer stay in the link.
  PsScript& stop_reading(int peer);
  PsScript& read_on(int peer);
  PsScript& vanish(int peer);
  /// Asks "Do you see this file?" about a file that exists.
  PsScript& find_file(int peer);
  /// Asks the ps to write its shard into the folder of find_file's file, as `name`.
  PsScript& save_shard(int peer, const std::string& name, std::uint16_t save);
  PsScript& wait_seconds(std::uint8_t seconds);
  /// Tells the ps to stop.
  PsScript& stop_ps();

  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  void act(int which, int peer);
  void put(std::uint64_t number, int bytes);

  std::vector<std::uint8_t> bytes_;
};

}  // namespace paceline::testing
