// TLS for HTTP: the server shows a certificate, and asks callers for none.
#pragma once

#include <memory>
#include <string>

#include "net/stream/byte_stream.h"
#include "net/tls/openssl_context.h"

namespace paceline {

/// Makes the streams of one server or of one caller. Thread-safe.
class HttpsContext {
 public:
  /// Throws as show_certificate does.
  static HttpsContext of_server(const FlaggedFile& certificate, const FlaggedFile& key);
  /// Makes the context of a caller that accepts the certificates of this authority; without a path,
  /// those that the system trusts. Throws as trust_authority does.
  static HttpsContext of_caller(const FlaggedFile& authority);

  /// Returns the stream for a socket that the server has accepted.
  std::unique_ptr<ByteStream> answer(int fd) const;
  /// Returns the stream for a socket that is connected to this host, a name or an address. Its
  /// `open` throws kUnavailable if the server cannot prove to be that host.
  std::unique_ptr<ByteStream> call(int fd, const std::string& host) const;

 private:
  HttpsContext() : context_(make_openssl_context()) {}
  OpensslContext context_;
};

}  // namespace paceline
