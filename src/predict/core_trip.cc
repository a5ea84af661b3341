#include "predict/core_trip.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/cores.h"
#include "base/pinned.h"
#include "base/real_clock.h"

namespace paceline {
namespace {

constexpr int kMostCores = 8;
constexpr int kTimings = 31, kRoundTrips = 200;
constexpr Duration kLongest = std::chrono::milliseconds(20);  // for a pair whose cores are busy
// While cores kept their places, measured trips were within a factor of 1.2 of each other. When
// cores moved, trips differed by a factor of 2 (two threads of a core, or cores with a common
// cache) to 5 (cores without a common cache).
constexpr double kSamePlacement = 1.6;
constexpr double kLongestTrip = 2e-6;  // a longer trip shows that other processes ran

/// Two threads, one on each core, that answer each other through two words of memory.
class PairOfCores {
 public:
  PairOfCores(int one, int other) : one_(one), other_(other) {}

  // Returns the seconds per trip of each timing.
  std::vector<double> trips() {
    std::thread answering([&] { answer(); });
    std::vector<double> seconds = ask();
    answering.join();
    return seconds;
  }

 private:
  static constexpr int kEnd = -1;

  void answer() {
    const Pinned here(other_);
    for (int seen = 0; seen != kEnd; seen = question_.load(std::memory_order_acquire)) {
      answer_.store(seen, std::memory_order_release);
    }
  }

  std::vector<double> ask() {
    const Pinned here(one_);
    std::vector<double> seconds;
    const TimePoint begun = kRealClock.now();
    int next = 0;
    for (int timing = 0; timing < kTimings && kRealClock.now() - begun < kLongest; ++timing) {
      const TimePoint from = kRealClock.now();
      for (int trip = 0; trip < kRoundTrips; ++trip) {
        question_.store(++next, std::memory_order_release);
        while (answer_.load(std::memory_order_acquire) != next) continue;
      }
      const std::chrono::duration<double> taken = kRealClock.now() - from;
      seconds.push_back(taken.count() / (2 * kRoundTrips));
    }
    question_.store(kEnd);
    return seconds;
  }

  alignas(kCacheLine) std::atomic<int> question_ = 0;
  const int one_, other_;
  alignas(kCacheLine) std::atomic<int> answer_ = 0;
};

// The lower quartile, since other processes make some timings longer.
double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + std::ptrdiff_t(values.size() / 4);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

double core_trip_seconds() {
  const int cores = std::min(usable_cores(), kMostCores);
  if (cores < 2) return 0;
  double sum = 0;
  for (int core = 1; core < cores; ++core) {
    sum += lower_quartile(PairOfCores(core - 1, core).trips());
  }
  const double trip = sum / (cores - 1);
  return trip < kLongestTrip ? trip : 0;
}

bool is_same_placement(double one_trip, double other_trip) {
  const auto [less, more] = std::minmax(one_trip, other_trip);
  return less == 0 || more < kSamePlacement * less;
}

}  // namespace paceline
