// Makes the encrypted streams of one link, from its key or its certificates.
#pragma once

#include <memory>
#include <string>

#include "net/stream/byte_stream.h"
#include "net/tls/link_security.h"
#include "net/tls/openssl_context.h"

namespace paceline {

/// Sets up TLS 1.3 and nothing older. Both ends are authenticated, with a new Diffie-Hellman
/// exchange for each connection (RFC 8446: psk_dhe_ke, or certificates); there is no early data and
/// no resumption. Thread-safe.
class TlsContext {
 public:
  /// Throws kNotFound or kInvalidArgument naming the flag and the file of a certificate that cannot
  /// be read or does not fit. `security` must have a proof.
  explicit TlsContext(std::shared_ptr<const LinkSecurity> security);

  /// Returns the stream of the side that calls. `address` is what the caller calls the other side,
  /// whose certificate must be for that host.
  std::unique_ptr<ByteStream> call(int fd, const std::string& address) const;
  /// Returns the stream of the side that was called.
  std::unique_ptr<ByteStream> answer(int fd) const;

 private:
  void use_certificates(const LinkSecurity::Certificates& files);
  std::unique_ptr<ByteStream> stream(int fd, bool calls, const std::string& address) const;

  const std::shared_ptr<const LinkSecurity> security_;
  const std::string identity_;  // name of the key
  OpensslContext context_;
};

}  // namespace paceline
