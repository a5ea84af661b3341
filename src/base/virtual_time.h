// Virtual time for tests and the predictor, which drive state machines without a clock: a heap of
// events, and random numbers from a seed, so that a run replays exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "base/clock.h"

namespace paceline {

/// Time moves from one event to the next. Events at the same time run in the order in which they
/// were added.
class VirtualTime {
 public:
  explicit VirtualTime(std::uint64_t seed = 1) : random_(seed) {}

  TimePoint now() const { return now_; }
  double seconds() const;
  /// Calls `act` at that time, or now if the time has passed.
  void at(TimePoint time, std::function<void()> act);
  void after(Duration wait, std::function<void()> act) { at(now_ + wait, std::move(act)); }
  /// Runs the next event. Returns false if there is none.
  bool run_one();
  void run() {
    while (run_one()) {
    }
  }

  std::uint64_t random() { return random_(); }
  /// Returns a random number in [0, 1).
  double uniform() { return double(random_() >> 11) * 0x1p-53; }
  bool happens(double probability) { return uniform() < probability; }
  Duration between(Duration least, Duration most);

  /// These functions return the number of events that have run, and their hash. Two runs have the
  /// same hash only if they were alike.
  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }
  /// Makes the number a part of the hash.
  void mix(std::uint64_t number);

 private:
  struct Event {
    TimePoint at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {  // for a heap whose top is the earliest event
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  std::mt19937_64 random_;
  std::vector<Event> events_to_come_;  // a heap
  TimePoint now_{};
  std::uint64_t number_ = 0, events_ = 0, hash_ = 0;
};

}  // namespace paceline
