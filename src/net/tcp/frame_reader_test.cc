#include "net/tcp/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "base/testing/error_of.h"
#include "net/poll/file_descriptor.h"
#include "net/stream/socket_stream.h"
#include "net/testing/conformance.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// Some frames end within a read, some do not, and some have no payload.
constexpr std::size_t kSizes[] = {59, 0, 1, 30, 9000, 0, 4};

struct Exchange {
  Exchange() {
    for (const std::size_t size : kSizes) {
      payloads.push_back(pattern(size, int(payloads.size())));
      const FrameHeader header{
          .payload_bytes = std::uint32_t(size), .type = std::uint16_t(payloads.size()), .step = 7};
      begins.push_back(bytes.size());
      const auto encoded = encode_tcp(header);
      const std::uint32_t checksum = crc32c(payloads.back());
      const auto trailer = std::as_bytes(std::span(&checksum, 1));
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
      bytes.insert(bytes.end(), payloads.back().begin(), payloads.back().end());
      bytes.insert(bytes.end(), trailer.begin(), trailer.end());
    }
  }
  /// Returns the index of the frame that contains this byte.
  std::size_t frame_of(std::size_t byte) const {
    return std::size_t(std::ranges::upper_bound(begins, byte) - begins.begin()) - 1;
  }

  std::vector<std::vector<std::byte>> payloads;
  std::vector<std::size_t> begins;  // offset of each frame
  std::vector<std::byte> bytes;
};

/// Gives a reader the bytes of a peer, `most` bytes at a time.
class Reading {
 public:
  explicit Reading(std::size_t most) : most_(most) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    near_ = FileDescriptor(ends[0]);
    far_ = FileDescriptor(ends[1]);
  }
  /// Returns the error that ended the reading; empty if there was none.
  std::string read(std::span<const std::byte> bytes) {
    return error_of(ErrorCode::kDataLoss, [&] {
      for (; !bytes.empty(); bytes = bytes.subspan(std::min(most_, bytes.size()))) {
        const auto piece = bytes.first(std::min(most_, bytes.size()));
        EXPECT_EQ(::send(far_.get(), piece.data(), piece.size(), 0), ssize_t(piece.size()));
        SocketStream stream(near_.get());
        while (reader_.turn(stream, receiver_) == FrameReader::Outcome::kMore) {
        }
      }
    });
  }
  const TestReceiver& receiver() const { return receiver_; }

 private:
  TrafficMeter meter_;
  const std::size_t most_;
  FrameReader reader_{meter_};
  TestReceiver receiver_;
  FileDescriptor near_, far_;
};

void expect_first(const Exchange& exchange, const TestReceiver& receiver, std::size_t count) {
  const auto frames = receiver.frames();
  ASSERT_EQ(frames.size(), count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(frames[i].payload, exchange.payloads[i]);
}

TEST(FrameReader, GivesTheFramesThatWereSent) {
  const Exchange exchange;
  for (const std::size_t most : {1, 7, 39, 40, 41, 5000, 1 << 20}) {
    Reading reading(most);
    EXPECT_EQ(reading.read(exchange.bytes), "");
    expect_first(exchange, reading.receiver(), std::size(kSizes));
  }
}

// The reader notices each changed bit, and delivers the frames before it.
TEST(FrameReader, NoticesEachChangedBit) {
  const Exchange exchange;
  for (std::size_t byte = 0; byte < exchange.bytes.size(); ++byte) {
    std::vector<std::byte> bytes = exchange.bytes;
    bytes[byte] ^= std::byte(1 << byte % 8);
    SCOPED_TRACE(byte);
    Reading reading(bytes.size());
    const std::size_t frame = exchange.frame_of(byte), at = byte - exchange.begins[frame];
    EXPECT_THAT(reading.read(bytes), HasSubstr(at < 4                 ? "garbage"
                                               : at < kTcpHeaderBytes ? "the header of a frame"
                                                                      : "bytes of a frame"));
    expect_first(exchange, reading.receiver(), frame);
    if (testing::Test::HasFailure()) return;
  }
}

// The reader notices a changed length as soon as the header has arrived, without waiting for that
// many bytes.
TEST(FrameReader, NoticesAChangedLengthWhenTheHeaderIsThere) {
  TcpHeaderBytes header = encode_tcp({.payload_bytes = 4});
  header[6] ^= std::byte{1};
  EXPECT_THAT(Reading(64).read(header), HasSubstr("the header of a frame was changed"));
}

}  // namespace
}  // namespace paceline
