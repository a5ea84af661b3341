// Two ends that exchange bytes: a link of ours, or the barest loop that there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/pinned.h"

namespace paceline::bench {

/// What one exchange carries: so many pieces of so many bytes.
struct Message {
  std::size_t pieces = 1, piece_bytes = 8;
  std::size_t bytes() const { return pieces * piece_bytes; }
};

/// How both ends wait: by looking again and again, or asleep.
enum class Waiting : std::uint8_t { kSpinning, kSleeping };

struct ChannelOptions {
  Message message;
  Waiting waiting = Waiting::kSpinning;
  bool echo = false;  // the far end sends every piece back
  /// Of a bare socket: with the system calls that a link cannot do without. It sleeps.
  bool calls_of_link = false;
  /// With echo, of a bare socket: what is sent for a piece to come back; 0: a piece as well.
  std::size_t request_bytes = 0;
  /// And where it comes back to; null: anywhere.
  std::byte* answer = nullptr;
  /// Where the near end is pinned to, which the far end leaves alone; null: nowhere. Outlives the
  /// channel.
  const Pinned* near = nullptr;
};

/// Used by one thread, which is the near end; the far end is a process of its own (of inproc links
/// a thread).
class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends the message so often; returns when the far end has all of it or, with echo, when all
  /// came back. With echo a piece is sent again when it has come back, by the thread that has it.
  virtual void exchange(std::uint32_t times) = 0;
  void exchange() { exchange(1); }
  /// The far end takes no core until `resume`: a channel beside it is measured.
  virtual void pause() {}
  virtual void resume() {}
};

/// A link by its kind. Throws what make_link throws.
std::unique_ptr<Channel> make_link_channel(const std::string& kind, const ChannelOptions& options);
/// Two TCP sockets over loopback, and nothing around them.
std::unique_ptr<Channel> make_socket_channel(const ChannelOptions& options);
/// A ring in memory that both ends see, each piece copied in and copied out; sleepers wait on a
/// futex.
std::unique_ptr<Channel> make_memory_channel(const ChannelOptions& options);

}  // namespace paceline::bench
