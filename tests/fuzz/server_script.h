// Bytes as a script of what several peers do to a ps: connect, send frames, share memory, stop
// reading, vanish; and time passes. A real ServerJob, a fake link, no thread but that which saves.
//
// The script is a sequence of acts: one byte that says which act (its upper four bits) of which
// peer (its lower two), then what the act takes. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "net/frame.h"
#include "params/wire/message.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

/// What came of it.
struct ServerEnd {
  std::int64_t applied = 0;    // steps
  std::set<MessageType> said;  // by the ps, to anybody
  std::string warnings;        // lines
};

/// Plays a script to its end. Throws what means a bug of the ps.
ServerEnd play_server_script(Bytes script);

/// Writes scripts. Peers are 0 to 3; one that acts is connected first.
class ServerScript {
 public:
  /// Any frame. Offset and step are cut to 32 bits, and sign-extended when it is played.
  ServerScript& frame(int peer, MessageType type, const std::vector<std::byte>& payload,
                      FrameHeader header = {});
  /// Memory of this many bytes.
  ServerScript& share(int peer, std::uint16_t bytes);
  /// From now on what the ps sends to it stays with the link; or does no more.
  ServerScript& stop_reading(int peer);
  ServerScript& read_on(int peer);
  ServerScript& vanish(int peer);
  /// "Do you see this file?", of one that is there.
  ServerScript& find_file(int peer);
  /// Its shard is to be written into the folder of that file, as `name`.
  ServerScript& save_shard(int peer, const std::string& name, std::uint16_t save);
  ServerScript& wait_seconds(std::uint8_t seconds);
  /// The ps is told to stop.
  ServerScript& stop_server();

  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  void act(int which, int peer);
  void put(std::uint64_t number, int bytes);

  std::vector<std::uint8_t> bytes_;
};

}  // namespace paceline::testing
