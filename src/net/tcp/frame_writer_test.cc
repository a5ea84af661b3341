#include "net/tcp/frame_writer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "net/poll/file_descriptor.h"

namespace paceline {
namespace {

struct Queue {
  /// Frames of so many bytes each.
  explicit Queue(const std::vector<std::size_t>& sizes) : payloads(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      payloads[i].assign(sizes[i], std::byte(i + 1));
      FrameHeader header{.payload_bytes = std::uint32_t(sizes[i]), .id = std::uint32_t(i)};
      frames.push({.header = header, .payload = payloads[i]});
      const auto encoded = encode(header);
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
      bytes.insert(bytes.end(), payloads[i].begin(), payloads[i].end());
    }
  }
  std::vector<std::vector<std::byte>> payloads;
  Ring<QueuedFrame> frames;
  std::vector<std::byte> bytes;  // as they are to travel
};

/// Of a batch, what comes out at the other end.
std::vector<std::byte> sent_by(FrameBatch batch) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor near(ends[0]), far(ends[1]);
  EXPECT_EQ(batch.send(near.get()), std::ptrdiff_t(batch.bytes()));
  std::vector<std::byte> bytes(batch.bytes() + 1);
  const ssize_t got = ::recv(far.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(std::size_t(std::max<ssize_t>(got, 0)));
  return bytes;
}

// Short ones travel gathered, longer ones in parts: the bytes are the same.
TEST(FrameBatch, SendsWhatIsLeftOfItsFrames) {
  for (const std::size_t size : {0, 8, 1200, 4000, 5000}) {
    const Queue queue({size, 3, size});
    for (const std::size_t done :
         {std::size_t(0), std::size_t(5), kFrameHeaderBytes, kFrameHeaderBytes + size / 2}) {
      for (const std::size_t most : {std::size_t(40), std::size_t(1) << 20}) {
        SCOPED_TRACE(testing::Message() << size << " B, " << done << " done, at most " << most);
        const std::size_t bytes = std::min(most, queue.bytes.size() - done);
        const auto begin = queue.bytes.begin() + std::ptrdiff_t(done);
        EXPECT_EQ(sent_by(FrameBatch(queue.frames, done, most)),
                  std::vector<std::byte>(begin, begin + std::ptrdiff_t(bytes)));
      }
    }
  }
}

}  // namespace
}  // namespace paceline
