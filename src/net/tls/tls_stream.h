// TLS 1.3 over a socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "net/stream/byte_stream.h"
#include "paceline/error.h"

struct ssl_st;
struct ssl_session_st;
struct bio_st;

namespace paceline {

/// TLS over a socket. OpenSSL reads from and writes to buffers of the stream; only the stream calls
/// the system, and it keeps encrypted bytes that found no room. `read` and `write` exclude each
/// other for the time of a few records.
class TlsStream final : public ByteStream {
 public:
  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
    void operator()(ssl_session_st* session) const;
  };
  using Ssl = std::unique_ptr<ssl_st, FreeSsl>;
  /// Makes the error for a handshake that failed for this OpenSSL reason.
  using Explanation = std::function<Error(const TlsStream&, int reason)>;

  struct Use {
    /// The stream renews its sending keys after this many bytes.
    std::int64_t renew_after_bytes = std::numeric_limits<std::int64_t>::max();
    /// True: the called side sends one byte once it has accepted the caller's proof. The protocols
    /// of other systems have no such byte.
    bool welcomes = true;
  };
  /// `ssl` knows which side it is.
  TlsStream(Ssl ssl, int fd, const Use& use, Explanation explain);
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Need open() override;
  std::ptrdiff_t read(std::span<const iovec> parts) override;
  std::ptrdiff_t write(std::span<const iovec> parts) override;
  bool holds_unread() const override;
  bool encrypts() const override { return true; }
  void shut_writing() override;

  /// The number of times that the stream has renewed its sending keys.
  int renewals() const { return renewals_; }
  /// True if the peer has closed the socket without a TLS end of stream.
  bool ended() const { return ended_; }
  ssl_st* ssl() const { return ssl_.get(); }
  /// The name of this side's key in the handshake.
  std::string own_identity;
  /// The session that a caller has offered. It holds the key, which is wiped once the handshake is
  /// over.
  std::unique_ptr<ssl_session_st, FreeSsl> offered;
  /// The name of a key that a caller has offered and this side lacks; empty: none.
  std::string strange_identity;

 private:
  // OpenSSL calls these.
  static int bio_write(bio_st* bio, const char* data, int bytes);
  static int bio_read(bio_st* bio, char* data, int bytes);
  static long bio_control(bio_st* bio, int command, long number, void* pointer);
  int take_in(char* data, int bytes, bool& again);

  int welcome();
  void wipe_key();
  bool flush();
  std::size_t encrypt(std::span<const iovec> parts, std::size_t skip);
  void encrypt_record(const void* data, std::size_t bytes);
  bool holds_record() const;
  std::ptrdiff_t failed_read(int result);

  mutable std::mutex mutex_;
  const Ssl ssl_;
  const int fd_;
  const Use use_;
  const Explanation explain_;
  bool welcomed_ = false, open_ = false, ended_ = false;
  int error_number_ = 0;  // of the last read from the socket

  Buffer in_;  // arrived, not yet decrypted; between two reads it begins with a record
  std::size_t in_begin_ = 0, in_end_ = 0;
  std::vector<char> out_;  // encrypted, not yet sent
  std::size_t out_begin_ = 0;
  std::size_t unreported_ = 0;  // the caller's bytes that are in out_
  std::vector<char> record_;    // gathered from parts
  std::int64_t since_renewal_ = 0;
  int renewals_ = 0;
};

}  // namespace paceline
