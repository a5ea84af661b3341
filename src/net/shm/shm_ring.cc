#include "net/shm/shm_ring.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

/// The piece of a ring from `position` to its end at most.
std::size_t piece(std::uint64_t position, std::size_t bytes) {
  return std::min(bytes, kShmRingBytes - std::size_t(position % kShmRingBytes));
}

}  // namespace

ShmPair::ShmPair(std::shared_ptr<SharedMemory> mine, std::shared_ptr<const SharedMemory> theirs)
    : own(std::move(mine)), peers(std::move(theirs)) {
  if (peers->size() != kShmMemoryBytes)
    throw Error(ErrorCode::kDataLoss, "a ring of " + std::to_string(peers->size()) +
                                          " bytes where one has " +
                                          std::to_string(kShmMemoryBytes));
}

std::size_t ShmWriter::room(std::size_t wanted) {
  if (kShmRingBytes - std::size_t(head_ - seen_tail_) < wanted) {
    const std::uint64_t tail = pair_.theirs().tail.load();
    if (head_ - tail > kShmRingBytes)
      throw Error(ErrorCode::kDataLoss, "it claims to have read " + std::to_string(tail) +
                                            " bytes of " + std::to_string(head_));
    seen_tail_ = tail;
  }
  return kShmRingBytes - std::size_t(head_ - seen_tail_);
}

void ShmWriter::write(std::span<const std::byte> bytes) {
  std::byte* const ring = pair_.own->bytes().data() + kShmDataAt;
  const std::size_t first = piece(head_, bytes.size());
  if (!bytes.empty()) std::memcpy(ring + head_ % kShmRingBytes, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(ring, bytes.data() + first, bytes.size() - first);
  head_ += bytes.size();
}

std::size_t ShmReader::available() const {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::uint64_t head = pair_.theirs().head.load();
  if (head - tail > kShmRingBytes)
    throw Error(ErrorCode::kDataLoss, "it claims to have written " + std::to_string(head) +
                                          " bytes when " + std::to_string(tail) +
                                          " were read, and the ring holds " +
                                          std::to_string(kShmRingBytes));
  return std::size_t(head - tail);
}

void ShmReader::read(std::span<std::byte> bytes) {
  const std::byte* const ring = pair_.peers->bytes().data() + kShmDataAt;
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  const std::size_t first = piece(tail, bytes.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), ring + tail % kShmRingBytes, first);
  if (first < bytes.size()) std::memcpy(bytes.data() + first, ring, bytes.size() - first);
  tail_.store(tail + bytes.size(), std::memory_order_relaxed);
}

}  // namespace paceline
