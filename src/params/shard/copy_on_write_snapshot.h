// A variable as it was at one moment, kept while updates go on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace paceline {

/// Arrays of one length (a value and its large slots) that are copied region by region, by whoever
/// comes first: an updater just before it changes a region, or the reader. So a moment costs the
/// updates one copy, of what they have in their caches then, and nothing while none is wanted. The
/// memory for it is as large as the arrays.
class CopyOnWriteSnapshot {
 public:
  /// The arrays must outlive it.
  explicit CopyOnWriteSnapshot(std::vector<std::span<const std::byte>> arrays);
  /// Makes the memory, which else the first mark makes. Must not be called while it is marked.
  void make_room();
  /// Keeps what the arrays hold from now on. No update may be under way; `count` is the number that
  /// the rule has counted.
  void mark(std::int64_t count);
  void drop() { marked_ = false; }
  const std::int64_t& count() const { return count_; }

  /// Must be called before bytes [begin, end) of the arrays are changed. Any thread.
  void before_change(std::size_t begin, std::size_t end) {
    if (marked_.load(std::memory_order_acquire)) keep(begin, end);
  }
  /// Returns bytes of an array as they were at the mark. One thread, while it is marked.
  std::span<const std::byte> read(std::size_t array, std::size_t offset, std::size_t bytes);

 private:
  void keep(std::size_t begin, std::size_t end);
  void keep_region(std::size_t region);

  const std::vector<std::span<const std::byte>> arrays_;
  std::vector<Buffer> kept_;
  std::deque<std::mutex> regions_;
  std::deque<std::atomic<bool>> taken_;  // by region
  std::atomic<bool> marked_{false};
  std::int64_t count_ = 0;
};

}  // namespace paceline
