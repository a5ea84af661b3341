#include "net/tls/link_streams.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "net/stream/socket_stream.h"
#include "net/tcp/tcp_socket.h"
#include "net/tls/openssl_context.h"
#include "net/tls/tls_context.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// An unencrypted TLS alert that tells the caller to encrypt: fatal, insufficient_security (RFC
/// 8446, 6.2).
constexpr std::array<unsigned char, 7> kMustEncrypt = {21, 3, 3, 0, 2, 2, 71};

}  // namespace

LinkStreams::LinkStreams(std::shared_ptr<const LinkSecurity> security)
    : security_(std::move(security)) {
  if (security_ && security_->tls != Tls::kNever && security_->has_proof())
    tls_ = std::make_unique<TlsContext>(security_);
}

LinkStreams::~LinkStreams() = default;

bool LinkStreams::must_encrypt(int fd) const {
  if (!security_ || security_->tls == Tls::kNever) return false;
  return security_->tls == Tls::kAlways || !stays_on_host(fd);
}

std::unique_ptr<ByteStream> LinkStreams::of_dialled(int fd, const std::string& address) const {
  if (!must_encrypt(fd)) return std::make_unique<SocketStream>(fd);
  if (tls_) return tls_->call(fd, address);
  throw Error(ErrorCode::kInvalidArgument,
              "the link to " + address +
                  " must be encrypted, and this task has no key: `paceline key` makes one, to be "
                  "copied to every host (docs/security.md); --insecure goes without");
}

std::unique_ptr<ByteStream> LinkStreams::of_accepted(int fd) const {
  unsigned char first = 0;
  const ssize_t got = ::recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return nullptr;
  if (got <= 0) throw Error(ErrorCode::kUnavailable, "it closed before it had said a byte");
  if (first == kTlsHandshakeByte && tls_) return tls_->answer(fd);
  if (first == kTlsHandshakeByte && security_ && security_->tls == Tls::kNever)
    throw Error(ErrorCode::kFailedPrecondition,
                "it encrypts, and this task was started with --insecure");
  if (first == kTlsHandshakeByte)
    throw Error(ErrorCode::kFailedPrecondition,
                "it encrypts, and this task has no key: give it the job's with --key-file");
  if (must_encrypt(fd)) {
    static_cast<void>(::send(fd, kMustEncrypt.data(), kMustEncrypt.size(), MSG_NOSIGNAL));
    throw Error(ErrorCode::kFailedPrecondition,
                "it does not encrypt, as links of this job must (was it started with --insecure?)");
  }
  return std::make_unique<SocketStream>(fd);
}

void check_may_be_plain(std::span<const std::byte> first_bytes) {
  if (first_bytes.size() < kMustEncrypt.size() ||
      std::memcmp(first_bytes.data(), kMustEncrypt.data(), kMustEncrypt.size()) != 0)
    return;
  throw Error(ErrorCode::kInvalidArgument,
              "it takes only callers who encrypt: start this task without --insecure, and with the "
              "job's key (--key-file)");
}

bool encrypts_within_host(const std::shared_ptr<const LinkSecurity>& security) {
  return security && security->tls == Tls::kAlways;
}

}  // namespace paceline
