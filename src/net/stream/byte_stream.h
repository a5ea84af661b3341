// A stream of bytes under the frames of a connection: a socket alone, or TLS over one.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "net/poll/file_descriptor.h"

namespace paceline {

/// Reads and writes over a connected socket that somebody else owns, watches and closes; never
/// blocks. One thread at a time may read, and one at a time may write; a read and a write may run
/// at the same time.
class ByteStream {
 public:
  /// The event of the socket that a stream waits for.
  enum class Need { kNothing, kReadable, kWritable };

  virtual ~ByteStream() = default;
  /// Does what must precede the first byte. Returns kNothing once the stream can be used; otherwise
  /// the event after which the caller must call again. Throws Error if the two ends do not agree.
  virtual Need open() { return Need::kNothing; }
  /// Reads as ::readv does: returns the bytes, 0 if the peer will write no more, or −1 and errno
  /// (EAGAIN: nothing has arrived). Throws kDataLoss for bytes that were changed on the way.
  virtual std::ptrdiff_t read(std::span<const iovec> parts) = 0;
  /// Writes as ::writev does, without SIGPIPE: returns the number of bytes that need not be written
  /// again, or −1 and errno (EAGAIN: no room). The next call must begin with the bytes that found
  /// no room, unchanged.
  virtual std::ptrdiff_t write(std::span<const iovec> parts) = 0;
  /// True if `read` would find bytes that the socket no longer shows as readable.
  virtual bool holds_unread() const { return false; }
  /// True if written bytes are encrypted; `read` then detects each changed byte by itself.
  virtual bool encrypts() const { return false; }
  /// Tells the peer that nothing more will be written.
  virtual void shut_writing() = 0;
};

/// A socket and the stream over it.
struct StreamSocket {
  FileDescriptor fd;
  std::unique_ptr<ByteStream> stream;
};

}  // namespace paceline
