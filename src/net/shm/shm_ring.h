// Two rings of bytes between two tasks of one host, one in each direction. Layout: docs/wire.md.
//
// Each side has a memory of its own, which only that side can write. The memory has the bytes of
// this side's ring, how many bytes this side has written (head), and how many bytes of the peer's
// ring this side has read (tail). So a peer can lie, but do no harm: this side copies what the peer
// says once, and then checks the copy.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/cache_line.h"
#include "net/memory/shared_memory.h"

namespace paceline {

constexpr std::size_t kShmRingBytes = 1 << 20;
constexpr std::size_t kShmDataAt = 4096;
constexpr std::size_t kShmMemoryBytes = kShmDataAt + kShmRingBytes;
constexpr std::size_t kShmShortBytes = 48;
/// This bit of a side's head says that the bytes that its peer has not read lie in `short_frame`,
/// not in the ring.
constexpr std::uint64_t kShmBesideHead = std::uint64_t{1} << 63;

/// The first page of a side's memory. Fields that different threads write lie in separate cache
/// lines. A short frame lies in the same line as the head that announces it, so a reader needs no
/// other line.
struct ShmBlock {
  alignas(kCacheLine) std::atomic<std::uint64_t> head;  // bytes ever written, short frames included
  std::atomic<std::uint64_t> read;        // the tail at the time when short_frame was written
  std::byte short_frame[kShmShortBytes];  // valid if head has kShmBesideHead
  alignas(kCacheLine) std::atomic<std::uint64_t> tail;  // bytes ever read of the peer's ring
  /// Four times the number of this side's latest sleep, plus the reasons while that sleep lasts.
  alignas(kCacheLine) std::atomic<std::uint32_t> sleeps;
  /// The word on which the peer sleeps; waking the peer adds 1.
  alignas(kCacheLine) std::atomic<std::uint32_t> wakes;
  alignas(kCacheLine) std::atomic<std::uint32_t> beats;  // counts heartbeats
  std::atomic<std::uint32_t> closed;                     // 1 if nothing follows
};
static_assert(sizeof(ShmBlock) <= kShmDataAt && std::atomic<std::uint64_t>::is_always_lock_free);

/// Both memories of a connection, as one side sees them.
struct ShmPair {
  /// Throws kDataLoss if the peer's memory does not have kShmMemoryBytes bytes.
  ShmPair(std::shared_ptr<SharedMemory> mine, std::shared_ptr<const SharedMemory> theirs);

  ShmBlock& mine() const { return *reinterpret_cast<ShmBlock*>(own->bytes().data()); }
  const ShmBlock& theirs() const {
    return *reinterpret_cast<const ShmBlock*>(peers->bytes().data());
  }

  const std::shared_ptr<SharedMemory> own;
  const std::shared_ptr<const SharedMemory> peers;
};

/// Reads what the peer writes. One thread at a time uses it, except for has_data and tail.
class ShmReader {
 public:
  explicit ShmReader(const ShmPair& pair) : pair_(pair) {}
  /// True if something has arrived. Also begins to fetch it into this core's cache, because a
  /// caller that checks is about to read.
  bool has_data() const {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed), head = their_head();
    if (head == tail) return false;
    begin_to_fetch(tail, head);
    return true;
  }
  /// Returns the number of bytes that can be read now. Throws kDataLoss if the peer claims more
  /// than fits.
  std::size_t available();
  /// True if the bytes that available() has found lie beside the peer's head, and not in the ring.
  bool is_beside_head() const { return short_begin_ < short_end_; }
  /// Reads at most available() bytes.
  void read(std::span<std::byte> bytes);
  /// Returns the number of bytes ever read.
  std::uint64_t tail() const { return tail_.load(std::memory_order_acquire); }
  /// Gives back to the peer the room of the bytes that were read.
  void release() { pair_.mine().tail.store(tail_.load(std::memory_order_relaxed)); }
  /// True if at least half of the ring is free: then a peer that waits for room is woken.
  bool is_half_free() const {
    return their_head() - tail_.load(std::memory_order_relaxed) <= kShmRingBytes / 2;
  }

 private:
  std::uint64_t their_head() const { return pair_.theirs().head.load() & ~kShmBesideHead; }

  static constexpr std::size_t kFetchedEarly = 4096;
  /// Begins to fetch bytes from the other core's cache, so that they arrive while locks are taken
  /// and the header is checked. Always inline, since gcc removes calls of a function that has no
  /// other effect.
  [[gnu::always_inline]] void begin_to_fetch(std::uint64_t tail, std::uint64_t head) const {
    const std::byte* const ring = pair_.peers->bytes().data() + kShmDataAt;
    const std::uint64_t end = std::min(head, tail + kFetchedEarly);
    for (std::uint64_t at = tail; at < end; at += kCacheLine)
      __builtin_prefetch(ring + at % kShmRingBytes);
  }

  const ShmPair& pair_;
  std::atomic<std::uint64_t> tail_{0};
  std::array<std::byte, kShmShortBytes> short_;  // a copy of the peer's short_frame
  std::uint64_t short_begin_ = 0, short_end_ = 0;
};

/// Writes to this side's ring, or beside its head. One thread at a time may use a writer.
class ShmWriter {
 public:
  ShmWriter(const ShmPair& pair, const ShmReader& reader) : pair_(pair), reader_(reader) {}
  /// Returns how many bytes can be written now. Whenever it returns less than `wanted`, the number
  /// is exact; otherwise it may be too low. Throws kDataLoss if the peer claims to have read what
  /// was never written.
  std::size_t room(std::size_t wanted);
  /// Writes at most room() bytes, which the peer sees after publish.
  void write(std::span<const std::byte> bytes);
  void publish() { pair_.mine().head.store(head_); }
  /// Returns the place beside head for a frame of this many bytes, which the peer sees after
  /// publish_short. The place is empty if the frame is not short, or if the peer may not have read
  /// everything that was written before.
  std::span<std::byte> short_place(std::size_t bytes) const;
  void publish_short(std::size_t bytes);
  std::uint64_t head() const { return head_; }
  /// True if the peer has read as far as `position`.
  bool is_read(std::uint64_t position) const {
    return std::int64_t(pair_.theirs().tail.load() - position) >= 0;
  }

 private:
  bool all_is_read() const;
  void write_at(std::uint64_t position, std::span<const std::byte> bytes);

  const ShmPair& pair_;
  const ShmReader& reader_;
  std::uint64_t head_ = 0;
  std::uint64_t seen_tail_ = 0;
  std::size_t beside_head_ = 0;  // the bytes before head that are not in the ring
};

}  // namespace paceline
