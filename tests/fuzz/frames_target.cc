#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "net/stream/socket_stream.h"
#include "net/tcp/frame_reader.h"
#include "net/tcp/tcp_header.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

/// Accepts every frame up to the size of a hello, as a ps does before it knows its peer.
class Listener : public Receiver {
 public:
  std::span<std::byte> place_payload(const FrameHeader& header) override {
    if (header.payload_bytes > kMaxHelloBytes) throw Error(ErrorCode::kDataLoss, "too long");
    payload_.resize(header.payload_bytes);
    return payload_;
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (payload.size() != header.payload_bytes) __builtin_trap();
    taken += kTcpFramingBytes + payload.size();
  }
  void on_closed(const Error&) override {}

  std::size_t taken = 0;

 private:
  std::vector<std::byte> payload_;
};

void put_checksum(std::span<const std::byte> bytes, std::byte* at) {
  const std::uint32_t checksum = crc32c(bytes);
  std::memcpy(at, &checksum, sizeof checksum);
}

/// Returns the same frames with correct checksums, since libFuzzer would not find these.
std::vector<std::uint8_t> with_checksums(Bytes bytes) {
  std::vector<std::uint8_t> all(bytes.begin(), bytes.end());
  const std::span<std::byte> rest = std::as_writable_bytes(std::span(all));
  for (std::size_t at = 0; all.size() - at >= kTcpHeaderBytes;) {
    put_checksum(rest.subspan(at, kFrameHeaderBytes), rest.data() + at + kFrameHeaderBytes);
    std::uint32_t payload_bytes = 0;
    std::memcpy(&payload_bytes, rest.data() + at + sizeof kTcpFrameMagic, sizeof payload_bytes);
    const auto behind = rest.subspan(at + kTcpHeaderBytes);
    if (behind.size() < std::size_t{payload_bytes} + kTcpTrailerBytes) break;
    put_checksum(behind.first(payload_bytes), behind.data() + payload_bytes);
    at += payload_bytes + kTcpFramingBytes;
  }
  return all;
}

/// A pipe with the bytes that a peer has written before it closed the pipe. They fit into the
/// pipe's buffer.
class ClosedPipe {
 public:
  explicit ClosedPipe(Bytes bytes) {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) __builtin_trap();
    if (write(ends_[1], bytes.data(), bytes.size()) != ssize_t(bytes.size())) __builtin_trap();
    close(ends_[1]);
  }
  ~ClosedPipe() { close(ends_[0]); }
  ClosedPipe(const ClosedPipe&) = delete;
  ClosedPipe& operator=(const ClosedPipe&) = delete;
  int fd() const { return ends_[0]; }

 private:
  int ends_[2];
};

void read_frames(Bytes bytes) {
  const ClosedPipe peer(bytes);
  TrafficMeter meter;
  FrameReader reader(meter);
  Listener listener;
  SocketStream stream(peer.fd());
  try {
    while (reader.turn(stream, listener) != FrameReader::Outcome::kClosed) {
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
  }
  if (listener.taken > bytes.size()) __builtin_trap();
}

}  // namespace

void fuzz_frames(Bytes bytes) {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), 32768));
  read_frames(bytes);
  read_frames(with_checksums(bytes));
}

}  // namespace paceline::testing
