// Parts that all uses of TLS share: OpenSSL's settings, certificates, and texts for its errors.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace paceline {

/// The first byte from a caller that encrypts.
constexpr unsigned char kTlsHandshakeByte = 22;

struct FreeOpensslContext {
  void operator()(ssl_ctx_st* context) const;
};
using OpensslContext = std::unique_ptr<ssl_ctx_st, FreeOpensslContext>;

/// Makes the settings of a connection: TLS 1.3 and nothing older, no early data, no resumption.
OpensslContext make_openssl_context();

/// A file that the user names, and the flag that names it.
struct FlaggedFile {
  const char* flag;
  std::string path;
};

/// Makes this side show a certificate, and the certificates between it and the authority's. Throws
/// kNotFound or kInvalidArgument naming the flag and the file that cannot be read or does not fit,
/// and as read_secret_file does for a private key that others may read.
void show_certificate(ssl_ctx_st* context, const FlaggedFile& certificate, const FlaggedFile& key);
/// Accepts certificates that this authority has signed. Throws as show_certificate does.
void trust_authority(ssl_ctx_st* context, const FlaggedFile& authority);
/// Requires that the other side's certificate is for this host, a name or an address.
void expect_host(ssl_st* ssl, const std::string& host);

/// Returns OpenSSL's text for the reason of a TLS error.
std::string text_of_reason(int reason);

}  // namespace paceline
