// Counts what goes over a connection, and the time in which something does.
#pragma once

#include <chrono>
#include <mutex>

#include "net/link.h"

namespace paceline {

/// Thread-safe. Sending and receiving may overlap; the union of their times counts.
class TrafficMeter {
 public:
  /// Something began to be sent or received, and ended. Pairs may overlap.
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
  void count_sent(std::size_t bytes) {
    traffic_.bytes_sent.fetch_add(std::int64_t(bytes), std::memory_order_relaxed);
  }
  void count_received(std::size_t bytes) {
    traffic_.bytes_received.fetch_add(std::int64_t(bytes), std::memory_order_relaxed);
  }
  const Traffic& traffic() const { return traffic_; }

 private:
  Traffic traffic_;
  std::mutex mutex_;
  int under_way_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace paceline
