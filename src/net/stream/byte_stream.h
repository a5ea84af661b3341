// A stream of bytes under the frames of a connection: a socket alone, or TLS over one.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// Reads and writes over a connected socket that somebody else owns, watches and closes; never
/// blocks. Of each direction one thread at a time makes use; the two may run at the same time.
class ByteStream {
 public:
  /// The event of the socket that a stream waits for.
  enum class Need { kNothing, kReadable, kWritable };

  virtual ~ByteStream() = default;
  /// Goes on with what comes before the first byte, and is called again when the event that it
  /// needs has come. It returns kNothing once the stream can be used. Throws Error when the two
  /// ends do not agree.
  virtual Need open() { return Need::kNothing; }
  /// As ::readv does: bytes, 0 when the peer writes no more, −1 and errno (EAGAIN: nothing has
  /// arrived). Throws kDataLoss for bytes that were changed on the way.
  virtual std::ptrdiff_t read(std::span<const iovec> parts) = 0;
  /// As ::writev does, and without SIGPIPE: bytes that need not be written again, or −1 and errno
  /// (EAGAIN: no room). What found no room comes first in the next call, unchanged.
  virtual std::ptrdiff_t write(std::span<const iovec> parts) = 0;
  /// True when `read` would find bytes that the socket no longer shows as readable.
  virtual bool holds_unread() const { return false; }
  /// True when what is written is encrypted; `read` then notices each changed byte by itself.
  virtual bool encrypts() const { return false; }
  /// Tells the peer that nothing more will be written.
  virtual void shut_writing() = 0;
};

/// A socket, and the stream over it.
struct StreamSocket {
  FileDescriptor fd;
  std::unique_ptr<ByteStream> stream;
};

}  // namespace paceline
