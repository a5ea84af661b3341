#include "net/tcp/frame_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/copy_bytes.h"
#include "base/crc32c.h"
#include "net/received_frame.h"
#include "net/tls/link_streams.h"

namespace paceline {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
// The most bytes of a read that begins between two frames. Most of a large payload should not pass
// through the buffer, and only the header says where the payload belongs.
constexpr std::size_t kFirstBytes = 8 << 10;
// If this many bytes arrived at once, more have probably arrived meanwhile. Looking again costs
// less than waiting again.
constexpr std::size_t kStreamBytes = 4 << 10;
// Reads this many bytes of a payload at once, and takes their checksum while they lie in a cache.
constexpr std::size_t kReadPieceBytes = 256 << 10;
// A thread serves many connections: after this many bytes it turns to the next connection.
constexpr std::size_t kTurnBytes = 8 << 20;

}  // namespace

FrameReader::FrameReader(TrafficMeter& meter) : meter_(meter), buffer_(kBufferBytes) {}

FrameReader::~FrameReader() {
  if (in_payload_) meter_.end();
}

FrameReader::Outcome FrameReader::turn(ByteStream& stream, Receiver& receiver) {
  checks_ = !stream.encrypts();
  for (std::size_t total = 0; total < kTurnBytes || stream.holds_unread();) {
    const std::size_t asked = room();
    const std::ptrdiff_t got = fill(stream);
    if (got == 0 && !in_payload_) check_may_be_plain(buffer_.span().subspan(begin_, end_ - begin_));
    if (got == 0) return Outcome::kClosed;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) throw SocketFailure{errno};
    if (got < 0) return total == 0 ? Outcome::kNothing : Outcome::kDrained;
    take_in(std::size_t(got));
    hand_out(receiver);
    const bool short_read = std::size_t(got) < std::min(asked, kStreamBytes);
    if (short_read && !stream.holds_unread()) return Outcome::kDrained;
    total += std::size_t(got);
  }
  return Outcome::kMore;
}

std::size_t FrameReader::room() const {
  const std::size_t held = end_ - begin_, missing = place_.size() - placed_;
  if (!in_payload_ || missing == 0) return kFirstBytes - held;
  return missing > kReadPieceBytes ? kReadPieceBytes : missing + buffer_.size() - held;
}

std::ptrdiff_t FrameReader::fill(ByteStream& stream) {
  std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
  end_ -= begin_;
  begin_ = 0;
  const std::size_t direct = in_payload_ ? std::min(place_.size() - placed_, kReadPieceBytes) : 0;
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  if (in_payload_) parts[count++] = {place_.data() + placed_, direct};
  parts[count++] = {buffer_.data() + end_, room() - direct};
  return stream.read(std::span(parts).first(count));
}

void FrameReader::take_in(std::size_t bytes) {
  if (in_payload_) {
    const std::size_t direct = std::min(bytes, place_.size() - placed_);
    count_placed(direct);
    bytes -= direct;
  }
  end_ += bytes;
}

void FrameReader::hand_out(Receiver& receiver) {
  while (in_payload_ || begin_frame(receiver)) {
    fill_place_from_buffer();
    if (placed_ < place_.size() || !take_trailer()) return;
    end_frame(receiver);
  }
}

bool FrameReader::begin_frame(Receiver& receiver) {
  if (end_ - begin_ < kTcpHeaderBytes) return false;
  TcpHeaderBytes bytes;
  std::copy_n(buffer_.data() + begin_, kTcpHeaderBytes, bytes.data());
  header_ = decode_tcp(bytes);
  begin_ += kTcpHeaderBytes;
  place_ = checked_place(receiver, header_);
  placed_ = 0;
  checksum_ = 0;
  in_payload_ = true;
  meter_.begin();
  return true;
}

void FrameReader::fill_place_from_buffer() {
  const std::size_t taken = std::min(end_ - begin_, place_.size() - placed_);
  copy_bytes(place_.data() + placed_, buffer_.data() + begin_, taken);
  begin_ += taken;
  count_placed(taken);
}

/// Counts bytes that now lie in the place, and takes their checksum while they lie in a cache.
void FrameReader::count_placed(std::size_t bytes) {
  if (checks_) checksum_ = crc32c(place_.subspan(placed_, bytes), checksum_);
  placed_ += bytes;
}

/// Returns false if the trailer has not arrived.
bool FrameReader::take_trailer() {
  if (end_ - begin_ < kTcpTrailerBytes) return false;
  std::memcpy(&sent_checksum_, buffer_.data() + begin_, kTcpTrailerBytes);
  begin_ += kTcpTrailerBytes;
  return true;
}

void FrameReader::end_frame(Receiver& receiver) {
  in_payload_ = false;
  meter_.count_received(kTcpFramingBytes + place_.size());
  meter_.end();
  if (checks_) check_payload(header_, checksum_, sent_checksum_);
  receiver.on_frame(header_, place_);
}

std::string FrameReader::position() const {
  if (in_payload_)
    return "in the middle of a message (" + std::to_string(placed_) + " of " +
           std::to_string(place_.size()) + " bytes)";
  if (end_ > begin_) return "in the middle of a message's header";
  return "";
}

}  // namespace paceline
