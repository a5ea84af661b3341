#include "net/tls/openssl_context.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls/secret_key.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kMostKeyBytes = 64 << 10;

[[noreturn]] void throw_of_file(const FlaggedFile& file) {
  const unsigned long error = ERR_peek_error();
  const char* text = ERR_reason_error_string(error);
  const bool missing = ERR_GET_REASON(error) == ERR_R_SYS_LIB || ERR_GET_LIB(error) == ERR_LIB_SYS;
  throw Error(missing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
              std::string(file.flag) + "=" + file.path +
                  " cannot be used: " + (text == nullptr ? "it cannot be read" : text));
}

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

/// Gives no password: OpenSSL would otherwise ask the terminal for that of an encrypted key.
int give_no_password(char*, int, int, void*) { return 0; }

std::unique_ptr<EVP_PKEY, FreeKey> read_private_key(const FlaggedFile& file) {
  std::string text = read_secret_file(file.flag, file.path, kMostKeyBytes);
  BIO* const bytes = BIO_new_mem_buf(text.data(), int(text.size()));
  std::unique_ptr<EVP_PKEY, FreeKey> key(
      PEM_read_bio_PrivateKey(bytes, nullptr, give_no_password, nullptr));
  BIO_free(bytes);
  OPENSSL_cleanse(text.data(), text.size());
  if (!key) throw_of_file(file);
  return key;
}

}  // namespace

void FreeOpensslContext::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

OpensslContext make_openssl_context() {
  OpensslContext made(SSL_CTX_new(TLS_method()));
  SSL_CTX* const context = made.get();
  if (context == nullptr) throw Error(ErrorCode::kInternal, "OpenSSL has no TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set1_groups_list(context, "X25519:P-256");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return made;
}

void show_certificate(SSL_CTX* context, const FlaggedFile& certificate, const FlaggedFile& key) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.path.c_str()) != 1)
    throw_of_file(certificate);
  const auto secret = read_private_key(key);
  if (SSL_CTX_use_PrivateKey(context, secret.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    throw_of_file(key);
}

void trust_authority(SSL_CTX* context, const FlaggedFile& authority) {
  ERR_clear_error();
  if (SSL_CTX_load_verify_locations(context, authority.path.c_str(), nullptr) != 1)
    throw_of_file(authority);
}

void expect_host(SSL* ssl, const std::string& host) {
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1)
    SSL_set1_host(ssl, host.c_str());
}

std::string text_of_reason(int reason) {
  const char* text = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
  return text == nullptr ? "reason " + std::to_string(reason) : text;
}

}  // namespace paceline
