#include "net/tls/link_streams.h"

#include <sys/socket.h>

#include <cerrno>

#include "net/stream/socket_stream.h"
#include "net/tcp/tcp_socket.h"
#include "net/tls/tls_context.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// The first byte of a record of a TLS handshake. A preamble begins otherwise.
constexpr unsigned char kHandshakeRecord = 22;

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
  if (first == kHandshakeRecord && tls_) return tls_->answer(fd);
  if (first == kHandshakeRecord && security_ && security_->tls == Tls::kNever)
    throw Error(ErrorCode::kFailedPrecondition,
                "it encrypts, and this task was started with --insecure");
  if (first == kHandshakeRecord)
    throw Error(ErrorCode::kFailedPrecondition,
                "it encrypts, and this task has no key: give it the job's with --key-file");
  if (must_encrypt(fd))
    throw Error(ErrorCode::kFailedPrecondition,
                "it does not encrypt, as links of this job must (was it started with --insecure?)");
  return std::make_unique<SocketStream>(fd);
}

bool encrypts_within_host(const std::shared_ptr<const LinkSecurity>& security) {
  return security && security->tls == Tls::kAlways;
}

}  // namespace paceline
