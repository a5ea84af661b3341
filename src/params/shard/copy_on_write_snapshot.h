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

/// Keeps arrays of one length: a value and those of its slots that are not scalar. An updater
/// copies a region just before it changes the region, unless the region was copied since the mark.
/// So a snapshot costs the updates one copy of data that are in their caches at that time. While no
/// snapshot is wanted, updates copy nothing. The snapshot's memory is as large as the arrays.
class CopyOnWriteSnapshot {
 public:
  /// The arrays must outlive this object.
  explicit CopyOnWriteSnapshot(std::vector<std::span<const std::byte>> arrays);
  /// Allocates the memory for the copies. If nobody calls this function, the first mark()
  /// allocates.
  void make_room();
  /// From now on keeps the present content of the arrays. No update may be under way. `count` is
  /// the count of the variable's updates.
  void mark(std::int64_t count);
  void drop() { marked_ = false; }
  const std::int64_t& count() const { return count_; }

  /// Call it before bytes [begin, end) of any of the arrays change. Any thread may call.
  void before_change(std::size_t begin, std::size_t end) {
    if (marked_.load(std::memory_order_acquire)) keep(begin, end);
  }
  /// Returns bytes of an array as they were at the mark. Only one thread may call it. Throws
  /// kFailedPrecondition without a mark.
  std::span<const std::byte> read(std::size_t array, std::size_t offset, std::size_t bytes);

 private:
  void keep(std::size_t begin, std::size_t end);
  void keep_region(std::size_t region);

  const std::vector<std::span<const std::byte>> arrays_;
  std::vector<Buffer> kept_;
  std::deque<std::mutex> regions_;
  std::deque<std::atomic<bool>> taken_;  // by region: true if it was copied since the mark
  std::atomic<bool> marked_{false};
  std::int64_t count_ = 0;
};

}  // namespace paceline
