// Two rings of bytes between two tasks of one host, one in each direction. Layout: docs/wire.md.
//
// Each side has a memory of its own, which only it can write: its ring's bytes, how many it has
// written (head), and how many of the peer's it has read (tail). So a peer can lie, but not harm:
// what it says is copied once, then checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "net/shared_memory.h"

namespace paceline {

constexpr std::size_t kShmRingBytes = 1 << 20;
constexpr std::size_t kShmDataAt = 4096;
constexpr std::size_t kShmMemoryBytes = kShmDataAt + kShmRingBytes;

/// The first page of a side's memory. What different threads write lies in lines of its own.
struct ShmBlock {
  alignas(64) std::atomic<std::uint64_t> head;    // bytes ever written to this side's ring
  alignas(64) std::atomic<std::uint64_t> tail;    // bytes ever read of the peer's
  alignas(64) std::atomic<std::uint32_t> sleeps;  // 4 × number of the sleep, + what it waits for
  alignas(64) std::atomic<std::uint32_t> wakes;   // the peer's futex: waking it adds 1
  alignas(64) std::atomic<std::uint32_t> beats;   // heartbeats
  std::atomic<std::uint32_t> closed;              // 1: nothing follows what was written
};
static_assert(sizeof(ShmBlock) <= kShmDataAt && std::atomic<std::uint64_t>::is_always_lock_free);

/// The two memories of a connection as one side sees them.
struct ShmPair {
  /// Throws kDataLoss when the peer's memory has not the size of one.
  ShmPair(std::shared_ptr<SharedMemory> mine, std::shared_ptr<const SharedMemory> theirs);

  ShmBlock& mine() const { return *reinterpret_cast<ShmBlock*>(own->bytes().data()); }
  const ShmBlock& theirs() const {
    return *reinterpret_cast<const ShmBlock*>(peers->bytes().data());
  }

  const std::shared_ptr<SharedMemory> own;
  const std::shared_ptr<const SharedMemory> peers;
};

/// Writes to this side's ring. One thread at a time.
class ShmWriter {
 public:
  explicit ShmWriter(const ShmPair& pair) : pair_(pair) {}
  /// Bytes that can be written now, at least `wanted` if there are so many. Throws kDataLoss when
  /// the peer claims to have read what was never written.
  std::size_t room(std::size_t wanted);
  /// At most room; the peer sees it after publish.
  void write(std::span<const std::byte> bytes);
  void publish() { pair_.mine().head.store(head_); }
  std::uint64_t head() const { return head_; }
  /// Whether the peer has read as far as `position`.
  bool is_read(std::uint64_t position) const {
    return std::int64_t(pair_.theirs().tail.load() - position) >= 0;
  }

 private:
  const ShmPair& pair_;
  std::uint64_t head_ = 0;
  std::uint64_t seen_tail_ = 0;
};

/// Reads the peer's ring. One thread at a time, but for has_data.
class ShmReader {
 public:
  explicit ShmReader(const ShmPair& pair) : pair_(pair) {}
  bool has_data() const {
    return pair_.theirs().head.load() != tail_.load(std::memory_order_relaxed);
  }
  /// Bytes that can be read now. Throws kDataLoss when the peer claims more than fits.
  std::size_t available() const;
  /// At most available.
  void read(std::span<std::byte> bytes);
  std::uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }
  /// Gives the room of what was read back to the peer.
  void release() { pair_.mine().tail.store(tail_.load(std::memory_order_relaxed)); }
  /// Whether half of the ring, or more, is free by now: then a peer that waits for room is woken.
  bool is_half_free() const {
    return pair_.theirs().head.load(std::memory_order_relaxed) -
               tail_.load(std::memory_order_relaxed) <=
           kShmRingBytes / 2;
  }

 private:
  const ShmPair& pair_;
  std::atomic<std::uint64_t> tail_{0};
};

}  // namespace paceline
