#include "dashboard/https_context.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/tls/tls_stream.h"
#include "paceline/error.h"

namespace paceline {
namespace {

Error error_of_handshake(const TlsStream& stream, int reason) {
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return {ErrorCode::kUnavailable,
            std::string("its certificate is not accepted: ") +
                X509_verify_cert_error_string(SSL_get_verify_result(stream.ssl()))};
  if (stream.ended() || reason == 0)
    return {ErrorCode::kUnavailable, "it closed the connection before it was encrypted"};
  return {ErrorCode::kUnavailable, "it does not encrypt as it must: " + text_of_reason(reason)};
}

TlsStream::Ssl new_ssl(ssl_ctx_st* context) {
  TlsStream::Ssl ssl(SSL_new(context));
  if (!ssl) throw Error(ErrorCode::kUnavailable, "no memory for TLS");
  return ssl;
}

std::unique_ptr<ByteStream> stream_of(TlsStream::Ssl ssl, int fd) {
  return std::make_unique<TlsStream>(std::move(ssl), fd, TlsStream::Use{.welcomes = false},
                                     error_of_handshake);
}

}  // namespace

HttpsContext HttpsContext::of_server(const FlaggedFile& certificate, const FlaggedFile& key) {
  HttpsContext made;
  show_certificate(made.context_.get(), certificate, key);
  return made;
}

HttpsContext HttpsContext::of_caller(const FlaggedFile& authority) {
  HttpsContext made;
  if (authority.path.empty()) {
    SSL_CTX_set_default_verify_paths(made.context_.get());
  } else {
    trust_authority(made.context_.get(), authority);
  }
  SSL_CTX_set_verify(made.context_.get(), SSL_VERIFY_PEER, nullptr);
  return made;
}

std::unique_ptr<ByteStream> HttpsContext::answer(int fd) const {
  TlsStream::Ssl ssl = new_ssl(context_.get());
  SSL_set_accept_state(ssl.get());
  return stream_of(std::move(ssl), fd);
}

std::unique_ptr<ByteStream> HttpsContext::call(int fd, const std::string& host) const {
  TlsStream::Ssl ssl = new_ssl(context_.get());
  SSL_set_connect_state(ssl.get());
  SSL_set_tlsext_host_name(ssl.get(), host.c_str());
  expect_host(ssl.get(), host);
  return stream_of(std::move(ssl), fd);
}

}  // namespace paceline
