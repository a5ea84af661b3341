#include "net/tcp/frame_writer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "base/crc32c.h"
#include "net/poll/file_descriptor.h"
#include "net/stream/socket_stream.h"
#include "net/tcp/tcp_header.h"

namespace paceline {
namespace {

struct Queue {
  /// Makes frames whose payloads have these sizes.
  explicit Queue(const std::vector<std::size_t>& sizes) : payloads(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      payloads[i].assign(sizes[i], std::byte(i + 1));
      FrameHeader header{.payload_bytes = std::uint32_t(sizes[i]), .id = std::uint32_t(i)};
      frames.push({.header = header, .payload = payloads[i]});
      const auto encoded = encode_tcp(header);
      const std::uint32_t checksum = crc32c(payloads[i]);
      const auto trailer = std::as_bytes(std::span(&checksum, 1));
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
      bytes.insert(bytes.end(), payloads[i].begin(), payloads[i].end());
      bytes.insert(bytes.end(), trailer.begin(), trailer.end());
    }
  }
  std::vector<std::vector<std::byte>> payloads;
  Ring<QueuedFrame> frames;
  std::vector<std::byte> bytes;  // as they should travel
};

/// Sends a batch, and returns the bytes that arrive at the other end.
std::vector<std::byte> bytes_of(FrameBatch& batch) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor near(ends[0]), far(ends[1]);
  SocketStream stream(near.get());
  EXPECT_EQ(batch.send(stream), std::ptrdiff_t(batch.bytes()));
  std::vector<std::byte> bytes(batch.bytes() + 1);
  const ssize_t got = ::recv(far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(std::size_t(std::max<ssize_t>(got, 0)));
  return bytes;
}

std::vector<std::byte> sent_by(FrameBatch batch) {
  ChecksumSoFar first;
  batch.take_checksums(first);
  return bytes_of(batch);
}

// The parts of a short batch are copied into one buffer, those of a longer one are not. Both arrive
// with the same bytes.
TEST(FrameBatch, SendsWhatIsLeftOfItsFrames) {
  for (const std::size_t size : {0, 8, 1200, 4000, 5000}) {
    const Queue queue({size, 3, size});
    for (const std::size_t done : {std::size_t(0), std::size_t(5), kTcpHeaderBytes,
                                   kTcpHeaderBytes + size / 2, kTcpHeaderBytes + size + 1}) {
      for (const std::size_t most : {std::size_t(45), std::size_t(1) << 20}) {
        SCOPED_TRACE(testing::Message() << size << " B, " << done << " done, at most " << most);
        const std::size_t bytes = std::min(most, queue.bytes.size() - done);
        const auto begin = queue.bytes.begin() + std::ptrdiff_t(done);
        EXPECT_EQ(sent_by(FrameBatch(queue.frames, done, most)),
                  std::vector<std::byte>(begin, begin + std::ptrdiff_t(bytes)));
      }
    }
  }
}

TEST(FrameBatch, BeginsWithALongFrame) {
  constexpr std::size_t kLong = FrameBatch::kAloneBytes + 1;
  const Queue queue({8, kLong, 8, kLong});
  EXPECT_EQ(FrameBatch(queue.frames, 0, 1 << 20).bytes(), kTcpFramingBytes + 8);
  Queue rest({kLong, 8, kLong});
  EXPECT_EQ(FrameBatch(rest.frames, 3, 1 << 20).bytes(), 2 * kTcpFramingBytes + kLong + 8 - 3);
}

// The frame is sent piece by piece, and the system takes a part of each piece. The checksum covers
// the whole frame.
TEST(FrameBatch, GoesOnWithTheChecksumOfALongFrame) {
  const Queue queue({200'000, 8});
  ChecksumSoFar first;
  std::vector<std::byte> all;
  for (std::size_t done = 0; done < 200'000 + kTcpFramingBytes; done += 700) {
    const std::size_t most = done % 3 == 0 ? 900 : 800;
    FrameBatch batch(queue.frames, done, most);
    batch.take_checksums(first);
    const auto sent = bytes_of(batch);
    all.insert(all.end(), sent.begin(),
               sent.begin() + std::min<std::ptrdiff_t>(700, std::ssize(sent)));
  }
  all.resize(200'000 + kTcpFramingBytes);
  EXPECT_TRUE(std::ranges::equal(all, std::span(queue.bytes).first(all.size())));
}

}  // namespace
}  // namespace paceline
