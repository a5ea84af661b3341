// The streams of a link's sockets: some are encrypted, others are not.
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
  /// `security` may be null: nothing is encrypted then, and every caller is taken. Throws what
  /// TlsContext throws.
  explicit LinkStreams(std::shared_ptr<const LinkSecurity> security);
  ~LinkStreams();

  /// The stream of a socket that this side has connected. Throws kInvalidArgument when it leaves
  /// the host and there is no proof.
  std::unique_ptr<ByteStream> of_dialled(int fd, const std::string& address) const;
  /// The stream of a socket that was accepted, once its first byte is there; null before. A caller
  /// may always encrypt. Throws kFailedPrecondition for one that should and does not, and tells it.
  std::unique_ptr<ByteStream> of_accepted(int fd) const;

 private:
  bool must_encrypt(int fd) const;

  const std::shared_ptr<const LinkSecurity> security_;
  std::unique_ptr<const TlsContext> tls_;
};

/// Throws kInvalidArgument when the first bytes of an answer say that the other side takes only
/// callers who encrypt.
void check_may_be_plain(std::span<const std::byte> first_bytes);

/// True when nothing leaves a host unencrypted, nor stays on it: no memory is shared then.
bool encrypts_within_host(const std::shared_ptr<const LinkSecurity>& security);

}  // namespace paceline
