#include "net/tcp/frame_writer.h"

#include <algorithm>
#include <span>

#include "base/crc32c.h"

namespace paceline {
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

/// Returns the position in `data` at which the batch ends.
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

std::ptrdiff_t FrameBatch::send(ByteStream& stream) const {
  return stream.write(std::span(parts_).first(count_));
}

}  // namespace paceline
