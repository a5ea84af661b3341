// TLS under HTTP: the server shows a certificate, and asks callers for none.
#pragma once

#include <memory>
#include <string>

#include "net/stream/byte_stream.h"
#include "net/tls/openssl_context.h"

namespace paceline {

/// Makes the streams of one server, or of one caller. Thread-safe.
class HttpsContext {
 public:
  /// Throws as show_certificate does.
  static HttpsContext of_server(const FlaggedFile& certificate, const FlaggedFile& key);
  /// Accepts the certificates of this authority; without a path, those of the system's. Throws as
  /// trust_authority does.
  static HttpsContext of_caller(const FlaggedFile& authority);

  /// The stream of a socket that was accepted.
  std::unique_ptr<ByteStream> answer(int fd) const;
  /// The stream of a socket that was connected to this host, a name or an address. Its `open`
  /// throws kUnavailable for a server that does not prove to be that host.
  std::unique_ptr<ByteStream> call(int fd, const std::string& host) const;

 private:
  HttpsContext() : context_(make_openssl_context()) {}
  OpensslContext context_;
};

}  // namespace paceline
