#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <array>
#include <memory>
#include <utility>

#include "bench/socket_end.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

constexpr std::array<unsigned char, 32> kKey = {1, 2, 3};
constexpr std::array<unsigned char, 2> kCipher = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr std::array<unsigned char, 1> kName = {'k'};

SSL_SESSION* session_of(SSL* ssl) {
  SSL_SESSION* const session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(session, kKey.data(), kKey.size());
  SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipher.data()));
  SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
  return session;
}

int use_key(SSL* ssl, const EVP_MD*, const unsigned char** name, std::size_t* bytes,
            SSL_SESSION** session) {
  *name = kName.data();
  *bytes = kName.size();
  *session = session_of(ssl);
  return 1;
}

int find_key(SSL* ssl, const unsigned char*, std::size_t, SSL_SESSION** session) {
  *session = session_of(ssl);
  return 1;
}

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using Context = std::unique_ptr<SSL_CTX, FreeSsl>;
using Ssl = std::unique_ptr<SSL, FreeSsl>;

Ssl make_ssl(SSL_CTX* context, int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  Ssl ssl(SSL_new(context));
  SSL_set_fd(ssl.get(), fd);
  return ssl;
}

class TlsEnd final : public SocketEnd {
 public:
  explicit TlsEnd(Ssl ssl) : ssl_(std::move(ssl)) {}

  bool send(std::span<const std::byte> piece) override {
    for (std::size_t at = 0; at < piece.size();) {
      std::size_t sent = 0;
      const int result = SSL_write_ex(ssl_.get(), piece.data() + at, piece.size() - at, &sent);
      if (result != 1 && !wait_after(result)) return false;
      at += sent;
    }
    return true;
  }
  bool receive(std::span<std::byte> piece) override {
    for (std::size_t at = 0; at < piece.size();) {
      std::size_t got = 0;
      const int result = SSL_read_ex(ssl_.get(), piece.data() + at, piece.size() - at, &got);
      if (result != 1 && !wait_after(result)) return false;
      at += got;
    }
    return true;
  }

 private:
  bool wait_after(int result) {
    const int what = SSL_get_error(ssl_.get(), result);
    if (what != SSL_ERROR_WANT_READ && what != SSL_ERROR_WANT_WRITE) return false;
    pollfd ready{SSL_get_fd(ssl_.get()), short(what == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    ::poll(&ready, 1, -1);
    return true;
  }

  const Ssl ssl_;
};

}  // namespace

SocketEnds make_tls_ends(int near, int far) {
  const Context context(SSL_CTX_new(TLS_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_psk_use_session_callback(context.get(), use_key);
  SSL_CTX_set_psk_find_session_callback(context.get(), find_key);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
  Ssl caller = make_ssl(context.get(), near), answerer = make_ssl(context.get(), far);
  SSL_set_connect_state(caller.get());
  SSL_set_accept_state(answerer.get());
  for (int turn = 0; turn < 1000; ++turn) {
    const bool called = SSL_do_handshake(caller.get()) == 1;
    if (SSL_do_handshake(answerer.get()) == 1 && called)
      return {std::make_unique<TlsEnd>(std::move(caller)),
              std::make_unique<TlsEnd>(std::move(answerer))};
  }
  throw Error(ErrorCode::kInternal, "[bench] OpenSSL makes no connection over loopback");
}

}  // namespace paceline::bench
