#include "net/tcp/frame_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/copy_bytes.h"
#include "net/received_frame.h"

namespace paceline {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
// Where no message is known to come, less: most of a large payload, whose place only its header
// tells, is not to pass through the buffer.
constexpr std::size_t kFirstBytes = 8 << 10;
// Where so much came at once, more is likely to have come meanwhile: looking is cheaper than
// waiting anew.
constexpr std::size_t kStreamBytes = 4 << 10;
// A thread serves many connections: none keeps it longer than this takes.
constexpr std::size_t kTurnBytes = 8 << 20;

}  // namespace

FrameReader::FrameReader(TrafficMeter& meter) : meter_(meter), buffer_(kBufferBytes) {}

FrameReader::~FrameReader() {
  if (in_payload_) meter_.end();
}

FrameReader::Outcome FrameReader::turn(int fd, Receiver& receiver) {
  for (std::size_t total = 0; total < kTurnBytes;) {
    const std::size_t asked = room();
    const std::ptrdiff_t got = fill(fd);
    if (got == 0) return Outcome::kClosed;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) throw SocketFailure{errno};
    if (got < 0) return total == 0 ? Outcome::kNothing : Outcome::kDrained;
    take_in(std::size_t(got));
    hand_out(receiver);
    if (std::size_t(got) < std::min(asked, kStreamBytes)) return Outcome::kDrained;
    total += std::size_t(got);
  }
  return Outcome::kMore;
}

std::size_t FrameReader::room() const {
  const std::size_t held = end_ - begin_;
  return in_payload_ ? place_.size() - placed_ + buffer_.size() - held : kFirstBytes - held;
}

std::ptrdiff_t FrameReader::fill(int fd) {
  std::copy(buffer_.data() + begin_, buffer_.data() + end_, buffer_.data());
  end_ -= begin_;
  begin_ = 0;
  const std::size_t direct = in_payload_ ? place_.size() - placed_ : 0;
  std::array<iovec, 2> parts;
  int count = 0;
  if (in_payload_) parts[count++] = {place_.data() + placed_, direct};
  parts[count++] = {buffer_.data() + end_, room() - direct};
  return ::readv(fd, parts.data(), count);
}

void FrameReader::take_in(std::size_t bytes) {
  if (in_payload_) {
    const std::size_t direct = std::min(bytes, place_.size() - placed_);
    placed_ += direct;
    bytes -= direct;
  }
  end_ += bytes;
}

void FrameReader::hand_out(Receiver& receiver) {
  while (in_payload_ || begin_frame(receiver)) {
    fill_place_from_buffer();
    if (placed_ < place_.size()) return;
    end_frame(receiver);
  }
}

bool FrameReader::begin_frame(Receiver& receiver) {
  if (end_ - begin_ < kFrameHeaderBytes) return false;
  header_ = decode(
      std::span<const std::byte, kFrameHeaderBytes>(buffer_.data() + begin_, kFrameHeaderBytes),
      kMaxPayloadBytes);
  begin_ += kFrameHeaderBytes;
  place_ = checked_place(receiver, header_);
  placed_ = 0;
  in_payload_ = true;
  meter_.begin();
  return true;
}

void FrameReader::fill_place_from_buffer() {
  const std::size_t taken = std::min(end_ - begin_, place_.size() - placed_);
  copy_bytes(place_.data() + placed_, buffer_.data() + begin_, taken);
  begin_ += taken;
  placed_ += taken;
}

void FrameReader::end_frame(Receiver& receiver) {
  in_payload_ = false;
  meter_.count_received(kFrameHeaderBytes + place_.size());
  meter_.end();
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
