#include "net/tcp/frame_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace paceline {
namespace {

// Gathering so few bytes takes less time than the system takes for a list of parts.
constexpr std::size_t kGatheredBytes = 4 << 10;

}  // namespace

FrameBatch::FrameBatch(const QueuedFrame& frame) : most_bytes_(frame.bytes()) {
  add(headers_.front(), frame, 0);
}

FrameBatch::FrameBatch(const Ring<QueuedFrame>& queue, std::size_t done, std::size_t most_bytes)
    : most_bytes_(most_bytes) {
  const std::size_t frames = std::min(queue.size(), kMostFrames);
  for (std::size_t i = 0; i < frames && bytes_ < most_bytes_; ++i) {
    add(headers_[i], queue[i], i == 0 ? done : 0);
  }
}

void FrameBatch::add(Header& header, const QueuedFrame& frame, std::size_t skip) {
  header = encode(frame.header);
  add(header.data(), kFrameHeaderBytes, skip);
  add(frame.payload.data(), frame.payload.size(), skip);
}

void FrameBatch::add(const void* data, std::size_t bytes, std::size_t& skip) {
  const std::size_t skipped = std::min(skip, bytes);
  skip -= skipped;
  if (skipped == bytes) return;
  const char* begin = static_cast<const char*>(data) + skipped;
  const std::size_t taken = std::min(bytes - skipped, most_bytes_ - bytes_);
  parts_[count_++] = {const_cast<char*>(begin), taken};
  bytes_ += taken;
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
