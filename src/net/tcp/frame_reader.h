// Cuts the bytes of a stream into frames. Payloads are received directly into their places; only
// headers, and the bytes behind them in the same read, pass through a small buffer.
#pragma once

#include <string>

#include "base/buffer.h"
#include "net/link.h"
#include "net/stream/byte_stream.h"
#include "net/tcp/tcp_header.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

/// Not thread-safe.
class FrameReader {
 public:
  enum class Outcome { kNothing, kDrained, kMore, kClosed };

  explicit FrameReader(TrafficMeter& meter);
  ~FrameReader();

  /// Reads what has arrived, but not for long. Asks the receiver for a frame's place once the
  /// frame's header is verified, and delivers the frame once its payload is verified. Afterwards,
  /// the stream holds no unread bytes. Throws what the receiver and the stream throw, kDataLoss for
  /// bytes that are no frame or were changed, and SocketFailure.
  Outcome turn(ByteStream& stream, Receiver& receiver);
  /// Returns a text such as "in the middle of a message (10 of 100 bytes)"; empty between two
  /// frames.
  std::string position() const;
  /// True in the middle of a frame.
  bool in_message() const { return in_payload_ || end_ > begin_; }

  struct SocketFailure {
    int error_number;
  };

 private:
  std::ptrdiff_t fill(ByteStream& stream);
  void take_in(std::size_t bytes);
  void hand_out(Receiver& receiver);
  bool begin_frame(Receiver& receiver);
  void fill_place_from_buffer();
  void count_placed(std::size_t bytes);
  bool take_trailer();
  void end_frame(Receiver& receiver);
  std::size_t room() const;

  TrafficMeter& meter_;
  Buffer buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the part of the buffer that is not yet handed out
  bool in_payload_ = false;
  FrameHeader header_;
  std::span<std::byte> place_;
  std::size_t placed_ = 0;
  bool checks_ = true;          // this object checks payloads; the stream does not
  std::uint32_t checksum_ = 0;  // of the bytes placed so far
  std::uint32_t sent_checksum_ = 0;
};

}  // namespace paceline
