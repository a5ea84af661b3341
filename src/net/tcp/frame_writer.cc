#include "net/tcp/frame_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/crc32c.h"

namespace paceline {
namespace {

// Gathering so few bytes takes less time than the system takes for a list of parts.
constexpr std::size_t kGatheredBytes = 4 << 10;

}  // namespace

FrameBatch::FrameBatch(const QueuedFrame& frame) : most_bytes_(frame.bytes(kTcpFramingBytes)) {
  add(frame, 0);
}

FrameBatch::FrameBatch(const Ring<QueuedFrame>& queue, std::size_t done, std::size_t most_bytes)
    : most_bytes_(most_bytes) {
  const std::size_t frames = std::min(queue.size(), kMostFrames);
  for (std::size_t i = 0; i < frames && bytes_ < most_bytes_; ++i) {
    if (i > 0 && queue[i].payload.size() > kAloneBytes) return;
    add(queue[i], i == 0 ? done : 0);
  }
}

void FrameBatch::add(const QueuedFrame& frame, std::size_t skip) {
  const std::size_t i = frames_++;
  headers_[i] = encode_tcp(frame.header);
  add(headers_[i].data(), kTcpHeaderBytes, skip);
  const std::size_t end = add(frame.payload.data(), frame.payload.size(), skip);
  payloads_[i] = {frame.payload.data(), end};
  if (end == frame.payload.size()) add(&trailers_[i], kTcpTrailerBytes, skip);
}

/// Returns where in `data` the batch ends.
std::size_t FrameBatch::add(const void* data, std::size_t bytes, std::size_t& skip) {
  const std::size_t skipped = std::min(skip, bytes);
  skip -= skipped;
  const std::size_t taken = std::min(bytes - skipped, most_bytes_ - bytes_);
  if (taken == 0) return skipped;
  parts_[count_++] = {const_cast<char*>(static_cast<const char*>(data)) + skipped, taken};
  bytes_ += taken;
  return skipped + taken;
}

void FrameBatch::take_checksums(ChecksumSoFar& first) {
  for (std::size_t i = 0; i < frames_; ++i) {
    ChecksumSoFar whole;
    ChecksumSoFar& so_far = i == 0 ? first : whole;
    const auto [data, end] = payloads_[i];
    if (end > so_far.bytes) {
      so_far.checksum = crc32c({data + so_far.bytes, end - so_far.bytes}, so_far.checksum);
      so_far.bytes = end;
    }
    trailers_[i] = so_far.checksum;
  }
}

std::ptrdiff_t FrameBatch::send(int fd) {
  if (bytes_ <= kGatheredBytes) return send_gathered(fd);
  msghdr message{};
  message.msg_iov = parts_.data();
  message.msg_iovlen = count_;
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::ptrdiff_t FrameBatch::send_gathered(int fd) const {
  std::array<std::byte, kGatheredBytes> bytes;
  std::size_t end = 0;
  for (const iovec& part : std::span(parts_).first(count_)) {
    std::memcpy(bytes.data() + end, part.iov_base, part.iov_len);
    end += part.iov_len;
  }
  return ::send(fd, bytes.data(), end, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace paceline
