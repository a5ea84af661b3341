// Counts what goes over a connection, and the time in which something does.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

#include "base/cache_line.h"
#include "net/link.h"

namespace paceline {

/// Sending and receiving may overlap; the union of their times counts. It is written with each
/// frame and so has cache lines of its own. Thread-safe.
class alignas(kCacheLine) TrafficMeter {
 public:
  /// Something begins to be sent or received, until `end`. Pairs may overlap.
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
  /// The same around one copy of a payload. Short ones are left out: looking at the clock would
  /// take as long as the copy.
  void begin_copy(std::size_t bytes) {
    if (bytes > kShortBytes) begin();
  }
  void end_copy(std::size_t bytes) {
    if (bytes > kShortBytes) end();
  }
  /// One thread at a time calls each of these, so that no locked addition is needed.
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
