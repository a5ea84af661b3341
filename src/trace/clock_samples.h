// Estimates another task's clock from round trips, by the filter that NTP uses: the shorter a round
// trip, the smaller its error.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/clock.h"

namespace paceline {

/// One round trip. At the time `at` of this clock, the other clock was ahead by `offset`, ± `half`
/// (half of the round trip). This holds however the delay is divided between the question and the
/// answer.
struct ClockSample {
  TimePoint at;
  Duration offset{}, half{};
  bool operator==(const ClockSample&) const = default;
};

/// Makes a sample of a question: sent at `asked`, answered when the other clock showed `theirs`,
/// with the answer arriving at `answered`.
ClockSample clock_sample(TimePoint asked, TimePoint theirs, TimePoint answered);

/// The samples of one other clock, ordered by time. When there are too many, the better of each two
/// neighbours stays, so that any longer period keeps its best sample.
class ClockSamples {
 public:
  static constexpr std::size_t kMost = 64;

  void add(const ClockSample& sample);
  std::span<const ClockSample> all() const { return std::span(samples_).first(count_); }

 private:
  std::array<ClockSample, kMost> samples_{};
  std::size_t count_ = 0;
};

/// By how much another clock is ahead of this one: by `offset` at the time `at` of this clock, and
/// by `drift` more for each second after that.
struct ClockLine {
  TimePoint at;
  Duration offset{};
  double drift = 0;
  Duration uncertainty{};

  /// Returns the time of the other clock when this clock shows `here`.
  TimePoint there(TimePoint here) const;
  /// Returns the line by which this clock is ahead of the other one.
  ClockLine inverse() const;
  /// Joins two lines: this one leads from a first clock to a second, and `next` from the second to
  /// a third.
  ClockLine then(const ClockLine& next) const;
};

/// Returns the line that holds from `begin` to `end` of this clock. If the samples show that the
/// clocks drift apart, the line goes through the shortest round trips of the first and of the
/// second half of the samples; if not, it is level at the offset of the shorter of these two.
/// Clocks that show no drift may still drift by up to `most_drift` (5e-5 for the clocks of two
/// machines). There is at least one sample.
ClockLine estimate_clock(std::span<const ClockSample> samples, TimePoint begin, TimePoint end,
                         double most_drift);

}  // namespace paceline
