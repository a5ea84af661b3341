#include "net/tls/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "net/tls/openssl_context.h"

namespace paceline {
namespace {

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
/// The first byte that the answering side writes.
constexpr char kWelcome = 'W';
constexpr std::size_t kInBytes = 64 << 10;
/// The most bytes that are encrypted before one call sends them.
constexpr std::size_t kOutBytes = 256 << 10;

/// Returns the reason of OpenSSL's last failure on this thread; 0: none.
int last_reason() { return ERR_GET_REASON(ERR_peek_last_error()); }

}  // namespace

void TlsStream::FreeSsl::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void TlsStream::FreeSsl::operator()(ssl_session_st* session) const { SSL_SESSION_free(session); }

TlsStream::TlsStream(Ssl ssl, int fd, const Use& use, Explanation explain)
    : ssl_(std::move(ssl)), fd_(fd), use_(use), explain_(std::move(explain)), in_(kInBytes) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "paceline");
    BIO_meth_set_write(made, &bio_write);
    BIO_meth_set_read(made, &bio_read);
    BIO_meth_set_ctrl(made, &bio_control);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
}

TlsStream::~TlsStream() = default;

// Functions between OpenSSL and the buffers.

int TlsStream::bio_write(BIO* bio, const char* data, int bytes) {
  auto& out = static_cast<TlsStream*>(BIO_get_data(bio))->out_;
  try {
    out.insert(out.end(), data, data + bytes);
  } catch (const std::exception&) {
    return -1;  // no exception may pass through OpenSSL
  }
  return bytes;
}

int TlsStream::bio_read(BIO* bio, char* data, int bytes) {
  bool again = false;
  const int taken = static_cast<TlsStream*>(BIO_get_data(bio))->take_in(data, bytes, again);
  BIO_clear_retry_flags(bio);
  if (again) BIO_set_retry_read(bio);
  return taken;
}

long TlsStream::bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return static_cast<TlsStream*>(BIO_get_data(bio))->ended_ ? 1 : 0;
  return 0;
}

int TlsStream::take_in(char* data, int bytes, bool& again) {
  while (in_begin_ == in_end_) {
    const ssize_t got = ::recv(fd_, in_.data(), in_.size(), MSG_DONTWAIT);
    error_number_ = got < 0 ? errno : 0;
    if (got < 0 && errno == EINTR) continue;
    again = got < 0 && errno == EAGAIN;
    ended_ = got == 0;
    if (got <= 0) return int(got);
    in_begin_ = 0;
    in_end_ = std::size_t(got);
  }
  const std::size_t taken = std::min(std::size_t(bytes), in_end_ - in_begin_);
  std::memcpy(data, in_.data() + in_begin_, taken);
  in_begin_ += taken;
  return int(taken);
}

/// Sends the encrypted bytes. Returns false if some of them could not be sent; errno says why.
bool TlsStream::flush() {
  while (out_begin_ < out_.size()) {
    const ssize_t sent = ::send(fd_, out_.data() + out_begin_, out_.size() - out_begin_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    out_begin_ += std::size_t(sent);
  }
  out_.clear();
  out_begin_ = 0;
  return true;
}

/// True if the buffer holds a whole record; OpenSSL takes the buffer record by record.
bool TlsStream::holds_record() const {
  if (in_end_ - in_begin_ < SSL3_RT_HEADER_LENGTH) return false;
  const std::byte* header = in_.data() + in_begin_;
  const std::size_t bytes =
      std::to_integer<std::size_t>(header[3]) << 8 | std::to_integer<std::size_t>(header[4]);
  return in_end_ - in_begin_ >= SSL3_RT_HEADER_LENGTH + bytes;
}

// Functions of the stream.

ByteStream::Need TlsStream::open() {
  const std::lock_guard lock(mutex_);
  if (open_) return Need::kNothing;
  ERR_clear_error();
  int result = SSL_do_handshake(ssl_.get());
  if (result == 1 && use_.welcomes) result = welcome();
  const int what = SSL_get_error(ssl_.get(), result);
  const int reason = last_reason();
  const bool flushed = flush();
  if (result != 1 && what != SSL_ERROR_WANT_READ) throw explain_(*this, reason);
  if (!flushed && errno != EAGAIN) throw explain_(*this, 0);
  if (!flushed) return Need::kWritable;
  open_ = result == 1;
  if (open_) wipe_key();
  return open_ ? Need::kNothing : Need::kReadable;
}

/// The called side tells the caller with one byte that its proof was accepted, and the caller waits
/// for this byte. With TLS alone, the caller would learn that only from its first read.
int TlsStream::welcome() {
  char byte = kWelcome;
  std::size_t bytes = 0;
  if (SSL_is_server(ssl_.get()) == 0) return SSL_read_ex(ssl_.get(), &byte, 1, &bytes);
  return std::exchange(welcomed_, true) ? 1 : SSL_write_ex(ssl_.get(), &byte, 1, &bytes);
}

/// OpenSSL needs the key only for the handshake, but would keep it as long as the connection lasts.
void TlsStream::wipe_key() {
  constexpr std::array<unsigned char, 32> kNone{};
  for (SSL_SESSION* const session : {offered.get(), SSL_get_session(ssl_.get())})
    if (session != nullptr) SSL_SESSION_set1_master_key(session, kNone.data(), kNone.size());
  offered.reset();
}

std::ptrdiff_t TlsStream::read(std::span<const iovec> parts) {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const iovec& part : parts) {
    for (std::size_t filled = 0; filled < part.iov_len;) {
      if (total > 0 && SSL_pending(ssl_.get()) == 0 && !holds_record())
        return std::ptrdiff_t(total);
      ERR_clear_error();
      std::size_t got = 0;
      const int result = SSL_read_ex(ssl_.get(), static_cast<char*>(part.iov_base) + filled,
                                     part.iov_len - filled, &got);
      if (result != 1) return total > 0 ? std::ptrdiff_t(total) : failed_read(result);
      filled += got;
      total += got;
    }
  }
  return std::ptrdiff_t(total);
}

std::ptrdiff_t TlsStream::failed_read(int result) {
  const int what = SSL_get_error(ssl_.get(), result);
  if (what == SSL_ERROR_ZERO_RETURN) return 0;
  if (what == SSL_ERROR_WANT_READ) {
    errno = EAGAIN;
    return -1;
  }
  // A peer that was killed sends no end of stream, and neither can an attacker who cuts the stream.
  // So a stream that ends without it is an error.
  if (ended_ || error_number_ != 0) {
    errno = ended_ ? ECONNRESET : error_number_;
    return -1;
  }
  const int reason = last_reason();
  if (reason > SSL_AD_REASON_OFFSET)
    throw Error(ErrorCode::kFailedPrecondition,
                "it ended the encrypted connection: " + text_of_reason(reason));
  throw Error(ErrorCode::kDataLoss,
              "bytes of the encrypted connection were changed on the way, or are of another one (" +
                  text_of_reason(reason) + ")");
}

bool TlsStream::holds_unread() const {
  const std::lock_guard lock(mutex_);
  return SSL_pending(ssl_.get()) > 0 || holds_record();
}

std::ptrdiff_t TlsStream::write(std::span<const iovec> parts) {
  const std::lock_guard lock(mutex_);
  if (!flush()) return -1;
  const std::size_t encrypted = encrypt(parts, unreported_);
  unreported_ += encrypted;
  if (!flush()) return -1;
  return std::ptrdiff_t(std::exchange(unreported_, 0));
}

/// Encrypts up to kOutBytes after the first `skip` bytes. Returns the number of bytes.
std::size_t TlsStream::encrypt(std::span<const iovec> parts, std::size_t skip) {
  std::size_t total = 0;
  record_.clear();
  for (const iovec& part : parts) {
    const std::size_t skipped = std::min(skip, part.iov_len);
    skip -= skipped;
    const char* data = static_cast<const char*>(part.iov_base) + skipped;
    for (std::size_t left = part.iov_len - skipped; left > 0 && total < kOutBytes;) {
      const std::size_t taken = std::min(left, kRecordBytes - record_.size());
      if (taken == kRecordBytes) {
        encrypt_record(data, taken);
      } else {
        record_.insert(record_.end(), data, data + taken);
        if (record_.size() == kRecordBytes) {
          encrypt_record(record_.data(), record_.size());
          record_.clear();
        }
      }
      data += taken;
      left -= taken;
      total += taken;
    }
  }
  if (!record_.empty()) encrypt_record(record_.data(), record_.size());
  return total;
}

void TlsStream::encrypt_record(const void* data, std::size_t bytes) {
  ERR_clear_error();
  if (since_renewal_ >= use_.renew_after_bytes) {
    SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    since_renewal_ = 0;
    ++renewals_;
  }
  std::size_t written = 0;
  if (SSL_write_ex(ssl_.get(), data, bytes, &written) != 1 || written != bytes)
    throw Error(ErrorCode::kInternal, "TLS cannot encrypt: " + text_of_reason(last_reason()));
  since_renewal_ += std::int64_t(bytes);
}

void TlsStream::shut_writing() {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  flush();
  ::shutdown(fd_, SHUT_WR);
}

}  // namespace paceline
