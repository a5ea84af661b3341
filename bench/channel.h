// Two ends that exchange bytes: over one of our links, or over the simplest possible loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/pinned.h"

namespace paceline::bench {

/// The content of one exchange: a number of pieces of one size.
struct Message {
  std::size_t pieces = 1, piece_bytes = 8;
  std::size_t bytes() const { return pieces * piece_bytes; }
};

struct ChannelOptions {
  Message message;
  bool echo = false;  // the far end sends every piece back
  /// True for a bare socket that makes the system calls which a link needs.
  bool calls_of_link = false;
  /// True for bare sockets under TLS 1.3, through OpenSSL's own calls.
  bool encrypted = false;
  /// With echo, over a bare socket: the bytes that request a piece; 0: the piece itself is sent and
  /// returned.
  std::size_t request_bytes = 0;
  /// Memory for the returned piece; null: anywhere.
  std::byte* answer = nullptr;
  /// The core to which the near end is pinned, and which the far end avoids; null: none. The object
  /// must outlive the channel.
  const Pinned* near = nullptr;
};

/// One thread uses a channel, as the near end. The far end is a process of its own, or the link's
/// threads if the link is inproc. Both ends sleep while they wait.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends the message `times` times. Returns when the far end has all of it or, with echo, when
  /// all of it has returned. With echo, the far thread that receives a piece sends it back.
  virtual void exchange(std::uint32_t times) = 0;
  void exchange() { exchange(1); }
  /// Until `resume`, the far end takes no core, so that another channel can be measured.
  virtual void pause() {}
  virtual void resume() {}
};

/// Makes a channel over a link of this kind; "tls" is tcp that encrypts. Throws as make_link does.
std::unique_ptr<Channel> make_link_channel(const std::string& kind, const ChannelOptions& options);
/// Makes a channel of two TCP sockets over loopback, with nothing around them.
std::unique_ptr<Channel> make_socket_channel(const ChannelOptions& options);
/// Makes a ring in memory that both ends see. Each piece is copied in and copied out; sleepers wait
/// on a futex.
std::unique_ptr<Channel> make_memory_channel(const ChannelOptions& options);

}  // namespace paceline::bench
