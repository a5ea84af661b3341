// The speed of the machine's memory, in arrays that no cache holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "base/thread_pool.h"

namespace paceline {

/// Returns the bytes of the last-level cache that one core sees; 32 MiB where the machine does not
/// say.
std::size_t cache_bytes();
/// Returns the bytes of an array of which no cache holds much.
std::size_t uncached_bytes();

/// Passes over memory, each split over the threads of a pool.
class MemoryPasses {
 public:
  /// Passes over arrays of its own.
  explicit MemoryPasses(int threads);
  /// Passes over the first uncached_bytes() of `memory`, which must outlive it, and writes them:
  /// taking memory from the system takes longer than passing over it.
  MemoryPasses(int threads, std::span<std::byte> memory);
  /// Passes are made by so many threads from now on.
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

  void read();
  void write();
  void copy();
  /// x ← a·x + b: every element is read and written.
  void update();

  // The bytes that a pass moves, read and written ones counted each.
  double read_bytes() const { return double(first_.size()); }
  double write_bytes() const { return double(first_.size()); }
  double copy_bytes() const { return 2 * double(first_.size()); }
  double update_bytes() const { return 2 * double(first_.size()); }

 private:
  template <typename Part>
  void in_parts(const Part& part);

  std::unique_ptr<ThreadPool> pool_;
  Buffer own_, second_;  // the second is made when it is first needed
  std::span<std::byte> first_;
  std::uint32_t sum_ = 0;  // is stored, or the compiler would leave the reading out
};

}  // namespace paceline
