#include "net/tls/tls_context.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <string_view>

#include "base/address.h"
#include "net/tls/tls_stream.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kIdentityBegins = "paceline:";
constexpr std::array<unsigned char, 2> kAes128GcmSha256 = {0x13, 0x01};

// Functions for connections that use the key.

/// Returns the session from which a connection by key takes its secrets. OpenSSL keeps it until the
/// handshake is over.
SSL_SESSION* session_of(SSL* ssl, const SecretKey& key) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const auto bytes = key.bytes();
  SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kAes128GcmSha256.data()));
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}

const LinkSecurity& security_of(const SSL* ssl) {
  return *static_cast<const LinkSecurity*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

std::string identity_of(const LinkSecurity& security) {
  return security.key ? std::string(kIdentityBegins) + security.key->fingerprint() : "";
}

int offer_key(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* bytes,
              SSL_SESSION** session) {
  *identity = nullptr;
  *bytes = 0;
  *session = nullptr;
  if (digest != nullptr && EVP_MD_get_type(digest) != NID_sha256) return 1;
  auto& stream = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
  *identity = reinterpret_cast<const unsigned char*>(stream.own_identity.data());
  *bytes = stream.own_identity.size();
  *session = session_of(ssl, *security_of(ssl).key);
  SSL_SESSION_up_ref(*session);
  stream.offered.reset(*session);
  return 1;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  *session = nullptr;
  auto& stream = *static_cast<TlsStream*>(SSL_get_app_data(ssl));
  const std::string_view offered(reinterpret_cast<const char*>(identity), bytes);
  if (offered == stream.own_identity) {
    *session = session_of(ssl, *security_of(ssl).key);
  } else {
    stream.strange_identity = offered;
  }
  return 1;
}

/// Refuses every certificate: this side has a key, and wants the other side to prove the same key.
int refuse_certificate(int, X509_STORE_CTX*) { return 0; }

// Functions that word errors.

/// Returns the fingerprint in a stranger's identity, or nothing. The identity's own bytes must not
/// reach a terminal.
std::string fingerprint_in(std::string_view identity) {
  if (!identity.starts_with(kIdentityBegins)) return "";
  identity.remove_prefix(kIdentityBegins.size());
  const bool right = identity.size() == 16 &&
                     identity.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return right ? std::string(identity) : "";
}

/// Explains on the calling side why a handshake failed; "it" in the text is the task that was
/// called. The error is kUnavailable only if a retry can help, because another task may answer
/// then.
Error error_of_caller(const TlsStream& stream, int reason, const LinkSecurity& security) {
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && security.key)
    return {ErrorCode::kInvalidArgument,
            "it shows a certificate, where this task has a key (--key-file)"};
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return {ErrorCode::kInvalidArgument,
            std::string("its certificate is not accepted: ") +
                X509_verify_cert_error_string(SSL_get_verify_result(stream.ssl()))};
  if (reason > SSL_AD_REASON_OFFSET && security.key)
    return {ErrorCode::kInvalidArgument,
            "it refuses this task's key: it has another one, or certificates. This task's key has "
            "the fingerprint " +
                security.key->fingerprint() + "; compare it with `paceline key --show` there"};
  if (reason > SSL_AD_REASON_OFFSET)
    return {ErrorCode::kInvalidArgument,
            "it refuses this task's certificate: " + text_of_reason(reason)};
  if (stream.ended() || reason == 0)
    return {ErrorCode::kUnavailable,
            "it closed the connection instead of proving that it belongs to the job: it does not "
            "encrypt (--insecure), or is no task"};
  return {ErrorCode::kInvalidArgument,
          "it does not prove that it belongs to the job (" + text_of_reason(reason) + ")"};
}

Error error_of_answerer(const TlsStream& stream, int reason, const LinkSecurity& security) {
  if (!stream.strange_identity.empty()) {
    const std::string theirs = fingerprint_in(stream.strange_identity);
    return {ErrorCode::kFailedPrecondition, theirs.empty() ? "it has a key of another program"
                                                           : "it has the key " + theirs +
                                                                 ", and this task the key " +
                                                                 security.key->fingerprint()};
  }
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY)
    return {ErrorCode::kFailedPrecondition, "it claims the job's key, and does not have it"};
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return {ErrorCode::kFailedPrecondition,
            std::string("its certificate is not accepted: ") +
                X509_verify_cert_error_string(SSL_get_verify_result(stream.ssl()))};
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
    return {ErrorCode::kFailedPrecondition, "it has no certificate"};
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_NO_PROTOCOLS_AVAILABLE)
    return {ErrorCode::kFailedPrecondition, "it offers only versions of TLS before 1.3"};
  if (stream.ended() || reason == 0)
    return {ErrorCode::kFailedPrecondition, "it closed the connection in the middle of the proof"};
  if (security.key && (reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM ||
                       reason == SSL_R_NO_SHARED_CIPHER || reason == SSL_R_NO_SUITABLE_KEY_SHARE))
    return {ErrorCode::kFailedPrecondition, "it offers no key"};
  return {ErrorCode::kFailedPrecondition,
          "it does not prove that it belongs to the job (" + text_of_reason(reason) + ")"};
}

}  // namespace

TlsContext::TlsContext(std::shared_ptr<const LinkSecurity> security)
    : security_(std::move(security)),
      identity_(identity_of(*security_)),
      context_(make_openssl_context()) {
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_app_data(context, const_cast<LinkSecurity*>(security_.get()));
  if (security_->certificates) {
    use_certificates(*security_->certificates);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, offer_key);
    SSL_CTX_set_psk_find_session_callback(context, find_key);
  }
}

void TlsContext::use_certificates(const LinkSecurity::Certificates& files) {
  SSL_CTX* const context = context_.get();
  show_certificate(context, {"--tls-cert", files.certificate}, {"--tls-key", files.key});
  trust_authority(context, {"--tls-ca", files.authority});
  constexpr unsigned char kAnyContext = 0;  // a side that checks certificates needs one
  SSL_CTX_set_session_id_context(context, &kAnyContext, sizeof kAnyContext);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

std::unique_ptr<ByteStream> TlsContext::call(int fd, const std::string& address) const {
  return stream(fd, true, address);
}

std::unique_ptr<ByteStream> TlsContext::answer(int fd) const { return stream(fd, false, ""); }

std::unique_ptr<ByteStream> TlsContext::stream(int fd, bool calls,
                                               const std::string& address) const {
  TlsStream::Ssl ssl(SSL_new(context_.get()));
  if (!ssl) throw Error(ErrorCode::kUnavailable, "no memory for TLS");
  if (calls) {
    SSL_set_connect_state(ssl.get());
    if (security_->key) SSL_set_verify(ssl.get(), SSL_VERIFY_PEER, refuse_certificate);
  } else {
    SSL_set_accept_state(ssl.get());
  }
  if (calls && security_->certificates) expect_host(ssl.get(), parse_address(address).host);
  auto made = std::make_unique<TlsStream>(
      std::move(ssl), fd, TlsStream::Use{.renew_after_bytes = security_->renew_after_bytes},
      [security = security_, calls](const TlsStream& stream, int reason) {
        return calls ? error_of_caller(stream, reason, *security)
                     : error_of_answerer(stream, reason, *security);
      });
  made->own_identity = identity_;
  return made;
}

}  // namespace paceline
