// Two ends that exchange bytes: a link of ours, or the barest loop that there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/pinned.h"

namespace paceline::bench {

/// The content of one exchange: so many pieces of so many bytes.
struct Message {
  std::size_t pieces = 1, piece_bytes = 8;
  std::size_t bytes() const { return pieces * piece_bytes; }
};

struct ChannelOptions {
  Message message;
  bool echo = false;  // the far end sends every piece back
  /// True for a bare socket that makes the system calls that a link cannot do without.
  bool calls_of_link = false;
  /// True for bare sockets under TLS 1.3, by OpenSSL's own calls.
  bool encrypted = false;
  /// The bytes that a bare socket with echo sends for a piece in return; 0: a piece as well.
  std::size_t request_bytes = 0;
  /// The memory that the returned piece is received into; null: anywhere.
  std::byte* answer = nullptr;
  /// The core that the near end is pinned to, which the far end leaves alone; null: none. It
  /// outlives the channel.
  const Pinned* near = nullptr;
};

/// Used by one thread, which is the near end; the far end is a process of its own (of inproc links
/// their threads). Both ends sleep while they wait.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends the message so often. Returns when the far end has all of it or, with echo, when all of
  /// it was returned. With echo a piece is sent again when it has arrived, by the thread that has
  /// it.
  virtual void exchange(std::uint32_t times) = 0;
  void exchange() { exchange(1); }
  /// Makes the far end take no core until `resume`, while a channel beside it is measured.
  virtual void pause() {}
  virtual void resume() {}
};

/// A link by its kind; "tls" is tcp that encrypts. Throws what make_link throws.
std::unique_ptr<Channel> make_link_channel(const std::string& kind, const ChannelOptions& options);
/// Two TCP sockets over loopback, and nothing around them.
std::unique_ptr<Channel> make_socket_channel(const ChannelOptions& options);
/// A ring in memory that both ends see, each piece copied in and copied out; sleepers wait on a
/// futex.
std::unique_ptr<Channel> make_memory_channel(const ChannelOptions& options);

}  // namespace paceline::bench
