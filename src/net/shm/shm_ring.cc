#include "net/shm/shm_ring.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "paceline/error.h"

namespace paceline {
namespace {

/// Returns how many of these bytes fit between `position` and the end of the ring.
std::size_t piece(std::uint64_t position, std::size_t bytes) {
  return std::min(bytes, kShmRingBytes - std::size_t(position % kShmRingBytes));
}

/// Stores the value, sequentially consistent with the loads that follow, and makes all stores to
/// the word's cache line leave at once. An atomic exchange would first wait for the earlier stores,
/// and a polling peer would fetch the line in between.
void store_at_once(std::atomic<std::uint64_t>& word, std::uint64_t value) {
#if defined(__SANITIZE_THREAD__)
  word.store(value);  // tsan does not support fences
#else
  word.store(value, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

ShmPair::ShmPair(std::shared_ptr<SharedMemory> mine, std::shared_ptr<const SharedMemory> theirs)
    : own(std::move(mine)), peers(std::move(theirs)) {
  if (peers->size() != kShmMemoryBytes)
    throw Error(ErrorCode::kDataLoss, "a ring of " + std::to_string(peers->size()) +
                                          " bytes where one has " +
                                          std::to_string(kShmMemoryBytes));
}

// Returns the room in the ring. Short frames take none, so head may be further ahead of the last
// tail that was seen than the ring is long.
std::size_t ShmWriter::room(std::size_t wanted) {
  const std::uint64_t used = head_ - seen_tail_;
  if (used > kShmRingBytes || kShmRingBytes - std::size_t(used) < wanted) {
    const std::uint64_t tail = pair_.theirs().tail.load();
    if (head_ - tail > kShmRingBytes)
      throw Error(ErrorCode::kDataLoss, "it claims to have read " + std::to_string(tail) +
                                            " bytes of " + std::to_string(head_));
    seen_tail_ = tail;
  }
  return kShmRingBytes - std::size_t(head_ - seen_tail_);
}

void ShmWriter::write_at(std::uint64_t position, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::byte* const ring = pair_.own->bytes().data() + kShmDataAt;
  const std::size_t first = piece(position, bytes.size());
  copy_bytes(ring + position % kShmRingBytes, bytes.data(), first);
  copy_bytes(ring, bytes.data() + first, bytes.size() - first);
}

/// First moves into the ring a short frame that the peer may not have read, since head will no
/// longer say that the frame lies beside it.
void ShmWriter::write(std::span<const std::byte> bytes) {
  const std::size_t moved = std::exchange(beside_head_, 0);
  write_at(head_ - moved, std::span(pair_.mine().short_frame).first(moved));
  write_at(head_, bytes);
  head_ += bytes.size();
}

/// The tail of the peer says how far the peer has read. If the peer has answered with a short
/// frame, its `read` says so, too, and lies in the same cache line as its head.
bool ShmWriter::all_is_read() const {
  return pair_.theirs().read.load() == head_ || pair_.theirs().tail.load() == head_;
}

std::span<std::byte> ShmWriter::short_place(std::size_t bytes) const {
  if (bytes > kShmShortBytes || !all_is_read()) return {};
  return std::span(pair_.mine().short_frame).first(bytes);
}

void ShmWriter::publish_short(std::size_t bytes) {
  ShmBlock& mine = pair_.mine();
  mine.read.store(reader_.tail(), std::memory_order_release);
  beside_head_ = bytes;
  head_ += bytes;
  store_at_once(mine.head, head_ | kShmBesideHead);
}

std::size_t ShmReader::available() {
  const std::uint64_t tail = this->tail();
  const std::uint64_t word = pair_.theirs().head.load(), head = word & ~kShmBesideHead;
  const bool beside_head = word != head;
  const std::size_t most = beside_head ? kShmShortBytes : kShmRingBytes;
  if (head - tail > most)
    throw Error(ErrorCode::kDataLoss, "it claims to have written " + std::to_string(head) +
                                          " bytes when " + std::to_string(tail) +
                                          " were read, and " +
                                          (beside_head ? "a short frame" : "the ring") + " holds " +
                                          std::to_string(most));
  short_begin_ = tail;
  short_end_ = beside_head ? head : tail;
  if (beside_head) std::memcpy(short_.data(), pair_.theirs().short_frame, kShmShortBytes);
  return std::size_t(head - tail);
}

void ShmReader::read(std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const std::uint64_t tail = this->tail();
  if (tail < short_end_) {
    PACELINE_CHECK(bytes.size() <= short_end_ - tail);
    std::memcpy(bytes.data(), short_.data() + (tail - short_begin_), bytes.size());
  } else {
    const std::byte* const ring = pair_.peers->bytes().data() + kShmDataAt;
    const std::size_t first = piece(tail, bytes.size());
    copy_bytes(bytes.data(), ring + tail % kShmRingBytes, first);
    copy_bytes(bytes.data() + first, ring, bytes.size() - first);
  }
  tail_.store(tail + bytes.size(), std::memory_order_release);
}

}  // namespace paceline
