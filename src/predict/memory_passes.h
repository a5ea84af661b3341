// The speed of the machine's memory, in arrays larger than any cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "base/thread_pool.h"

namespace paceline {

/// Returns the bytes of the last-level cache that one core uses; 32 MiB if the machine does not
/// tell them.
std::size_t cache_bytes();
/// Returns the bytes of an array of which caches hold only a small part.
std::size_t uncached_bytes();

/// Passes over memory, each split over the threads of a pool.
class MemoryPasses {
 public:
  /// Passes over its own arrays.
  explicit MemoryPasses(int threads);
  /// Passes over the first uncached_bytes() of `memory`, which must outlive this object, and writes
  /// to them. Taking memory from the system would take longer than a pass.
  MemoryPasses(int threads, std::span<std::byte> memory);
  /// From now on, this many threads make the passes.
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

  void read();
  void write();
  void copy();
  /// Computes x ← a·x + b, which reads and writes every element.
  void update();

  // The bytes that a pass moves; read bytes and written bytes both count.
  double read_bytes() const { return double(first_.size()); }
  double write_bytes() const { return double(first_.size()); }
  double copy_bytes() const { return 2 * double(first_.size()); }
  double update_bytes() const { return 2 * double(first_.size()); }

 private:
  template <typename Part>
  void in_parts(const Part& part);

  std::unique_ptr<ThreadPool> pool_;
  Buffer own_, second_;  // the second array is made when it is first used
  std::span<std::byte> first_;
  std::uint32_t sum_ = 0;  // stored, since otherwise the compiler would remove the reads
};

}  // namespace paceline
