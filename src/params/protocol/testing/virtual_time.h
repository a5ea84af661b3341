// Virtual time for tests of state machines: a heap of events, random numbers from a seed that
// replays exactly, and links on which frames take time.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "base/clock.h"

namespace paceline {

/// Time moves from one event to the next. Events of one moment keep their order.
class VirtualTime {
 public:
  explicit VirtualTime(std::uint64_t seed = 1) : random_(seed) {}

  TimePoint now() const { return now_; }
  double seconds() const;
  /// Never before now.
  void at(TimePoint time, std::function<void()> act);
  void after(Duration wait, std::function<void()> act) { at(now_ + wait, std::move(act)); }
  /// Runs the next event. False when there is none.
  bool run_one();
  void run() {
    while (run_one()) {
    }
  }

  std::uint64_t random() { return random_(); }
  /// In [0, 1).
  double uniform() { return double(random_() >> 11) * 0x1p-53; }
  bool happens(double probability) { return uniform() < probability; }
  Duration between(Duration least, Duration most);

  /// Events that have run, and a number that two runs share only if they were alike.
  std::uint64_t events() const { return events_; }
  std::uint64_t hash() const { return hash_; }
  /// Makes the number a part of the hash.
  void mix(std::uint64_t number);

 private:
  struct Event {
    TimePoint at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {  // the earliest of a heap is on top
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  std::mt19937_64 random_;
  std::priority_queue<Event> events_to_come_;
  TimePoint now_{};
  std::uint64_t number_ = 0, events_ = 0, hash_ = 0;
};

/// One direction of a connection, first in, first out. A frame takes its bytes by the link's rate
/// to be sent, after the frames before it, and arrives some delay later, never before an earlier
/// one.
class VirtualLink {
 public:
  VirtualLink(VirtualTime& time, double bytes_per_s) : time_(time), bytes_per_s_(bytes_per_s) {}
  /// `sent` is called when its last byte has left, `arrived` when it is there; both may be empty.
  void send(std::size_t bytes, Duration delay, std::function<void()> sent,
            std::function<void()> arrived);
  /// When the last frame arrives.
  TimePoint last_arrival() const { return arrives_; }

 private:
  VirtualTime& time_;
  double bytes_per_s_;
  TimePoint sent_{}, arrives_{};
};

}  // namespace paceline
