// The streams of a link's sockets, some of them encrypted.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "net/stream/byte_stream.h"
#include "net/tls/link_security.h"

namespace paceline {

class TlsContext;

/// Thread-safe.
class LinkStreams {
 public:
  /// If `security` is null, nothing is encrypted, and every caller is accepted. Throws as
  /// TlsContext does.
  explicit LinkStreams(std::shared_ptr<const LinkSecurity> security);
  ~LinkStreams();

  /// Returns the stream of a socket that this side has connected. Throws kInvalidArgument if the
  /// stream must be encrypted and this side has no proof.
  std::unique_ptr<ByteStream> of_dialled(int fd, const std::string& address) const;
  /// Returns the stream of an accepted socket, or null until its first byte has arrived. A caller
  /// may encrypt even if it need not. Throws kFailedPrecondition if the caller encrypts and this
  /// side has no proof. Also throws it if the caller must encrypt and does not, after telling the
  /// caller so. Throws kUnavailable if the caller has closed the socket.
  std::unique_ptr<ByteStream> of_accepted(int fd) const;

 private:
  bool must_encrypt(int fd) const;

  const std::shared_ptr<const LinkSecurity> security_;
  std::unique_ptr<const TlsContext> tls_;
};

/// Throws kInvalidArgument if the first bytes of an answer say that the other side accepts only
/// callers that encrypt.
void check_may_be_plain(std::span<const std::byte> first_bytes);

/// True if even connections within a host are encrypted: then no memory is shared.
bool encrypts_within_host(const std::shared_ptr<const LinkSecurity>& security);

}  // namespace paceline
