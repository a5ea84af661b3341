// The threads of a ps that apply rules, beside those of its link.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/thread_pool.h"

namespace paceline {

/// The threads serve one call at a time. A call that finds them busy does all of its work on its
/// own thread. Idle threads sleep. Thread-safe.
class ApplyPool {
 public:
  /// `threads` includes the calling thread.
  explicit ApplyPool(int threads) : pool_(threads) {}

  /// Splits [0, n) into ranges of about `grain` or more and calls function(begin, end) for each. If
  /// the threads are busy, there is one range.
  template <typename F>
  void for_ranges(std::int64_t n, std::int64_t grain, F&& function) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (n > grain && lock.try_lock()) return pool_.parallel_for(n, grain, function);
    if (n > 0) function(std::int64_t{0}, n);
  }
  /// Calls function(ThreadPool&) with the threads if they are free; otherwise with the calling
  /// thread alone.
  template <typename F>
  void with_threads(F&& function) {
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) return function(pool_);
    ThreadPool alone(1);
    function(alone);
  }

 private:
  std::mutex mutex_;
  ThreadPool pool_;
};

}  // namespace paceline
