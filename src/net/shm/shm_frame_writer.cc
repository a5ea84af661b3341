#include "net/shm/shm_frame_writer.h"

#include <algorithm>
#include <cstring>

#include "net/shm/shm_frame_reader.h"

namespace paceline {
namespace {

// The peer sees each piece of this size, so that it reads while this side writes.
constexpr std::size_t kWritePiece = 64 << 10;

std::array<std::byte, kFrameHeaderBytes> record_of(const QueuedFrame& frame) {
  auto bytes = encode(frame.header);
  if (frame.shared) std::memcpy(bytes.data(), &kSharedMagic, sizeof kSharedMagic);
  return bytes;
}

}  // namespace

void ShmFrameWriter::publish() {
  ring_.publish();
  sleep_.wake_peer(ShmSleep::kData);
}

bool ShmFrameWriter::write_whole(const QueuedFrame& frame) {
  if (frame.shared) return false;
  if (write_short(frame)) return true;
  const std::size_t bytes = frame.bytes(kFrameHeaderBytes);
  if (ring_.room(bytes) < bytes) return false;
  ring_.write(encode(frame.header));
  ring_.write(frame.payload);
  publish();
  return true;
}

bool ShmFrameWriter::write_short(const QueuedFrame& frame) {
  const std::span<std::byte> place = ring_.short_place(frame.bytes(kFrameHeaderBytes));
  if (place.empty()) return false;
  encode(frame.header, place.first<kFrameHeaderBytes>());
  std::ranges::copy(frame.payload, place.begin() + kFrameHeaderBytes);
  ring_.publish_short(place.size());
  sleep_.wake_peer(ShmSleep::kData);
  return true;
}

std::size_t ShmFrameWriter::write_some(const QueuedFrame& frame, std::size_t done,
                                       std::size_t most_bytes) {
  const std::size_t begin = done;
  if (frame.shared && done == 0) {
    // A memory that is passed twice would be taken for the next one.
    if (ring_.room(kFrameHeaderBytes) < kFrameHeaderBytes) return wait_for_room();
    if (!pass(frame)) return 0;
  }
  const auto header = record_of(frame);
  const std::size_t end =
      std::min(frame.bytes(kFrameHeaderBytes), done + std::max(most_bytes, kFrameHeaderBytes));
  while (done < end) {
    const auto rest = done < header.size() ? std::span(header).subspan(done)
                                           : frame.payload.subspan(done - header.size());
    const std::size_t written = write_piece(rest.first(std::min(rest.size(), end - done)));
    if (written == 0) break;
    done += written;
    if (done > kFrameHeaderBytes || done == end) publish();
  }
  if (done == kFrameHeaderBytes) publish();  // no room may be left for more
  return done == begin ? wait_for_room() : done - begin;
}

/// A writer that sleeps is woken when half of the ring is free, which needs fewer wakes. One that
/// still looks goes on when there is room for a piece.
std::size_t ShmFrameWriter::wait_for_room() {
  goal_ = ring_.head() - kShmRingBytes + kWritePiece;
  return 0;
}

std::size_t ShmFrameWriter::write_piece(std::span<const std::byte> bytes) {
  const std::size_t wanted = std::min(bytes.size(), kWritePiece);
  const std::size_t piece = std::min(wanted, ring_.room(wanted));
  if (piece < std::min(wanted, kFrameHeaderBytes)) return 0;  // a header is never split
  ring_.write(bytes.first(piece));
  return piece;
}

/// The descriptor goes first. The peer takes it when it reads its place in the ring. Only
/// kMostSharedWaiting of them wait for that at a time.
bool ShmFrameWriter::pass(const QueuedFrame& frame) {
  while (!passed_.empty() && ring_.is_read(passed_.front())) passed_.pop();
  if (passed_.size() == kMostSharedWaiting) {
    goal_ = passed_.front();
    return false;
  }
  socket_.pass(*frame.shared);
  passed_.push(ring_.head() + kFrameHeaderBytes);
  return true;
}

}  // namespace paceline
