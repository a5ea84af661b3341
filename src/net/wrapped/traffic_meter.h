// Counts the bytes over a connection, and the time in which it sends or receives.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

#include "base/cache_line.h"
#include "net/link.h"

namespace paceline {

/// Counts the time in which a connection sends, receives, or does both at once. Each frame writes
/// to this object, so it has cache lines of its own. Thread-safe.
class alignas(kCacheLine) TrafficMeter {
 public:
  /// Marks the start of sending or receiving, until `end`. Pairs may overlap.
  void begin() {
    std::lock_guard lock(mutex_);
    if (under_way_++ == 0) since_ = std::chrono::steady_clock::now();
  }
  void end() {
    std::lock_guard lock(mutex_);
    if (--under_way_ == 0) {
      const Duration spent = std::chrono::steady_clock::now() - since_;
      traffic_.busy_ns.fetch_add(spent.count(), std::memory_order_relaxed);
    }
  }
  /// Marks the start of one copy of a payload. Short copies are not timed, since reading the clock
  /// would take as long as the copy.
  void begin_copy(std::size_t bytes) {
    if (bytes > kShortBytes) begin();
  }
  void end_copy(std::size_t bytes) {
    if (bytes > kShortBytes) end();
  }
  /// One thread at a time calls count_sent, and one at a time count_received, so neither needs a
  /// locked addition.
  void count_sent(std::size_t bytes) { add(traffic_.bytes_sent, bytes); }
  void count_received(std::size_t bytes) { add(traffic_.bytes_received, bytes); }
  const Traffic& traffic() const { return traffic_; }

 private:
  static constexpr std::size_t kShortBytes = 4 << 10;

  static void add(std::atomic<std::int64_t>& sum, std::size_t bytes) {
    sum.store(sum.load(std::memory_order_relaxed) + std::int64_t(bytes), std::memory_order_relaxed);
  }

  Traffic traffic_;
  std::mutex mutex_;
  int under_way_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace paceline
