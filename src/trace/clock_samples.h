// Estimates another task's clock from round trips, by the filter that NTP uses: the shorter a round
// trip, the smaller its error.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/clock.h"

namespace paceline {

/// One round trip. At the time `at` here, the other clock was ahead by `offset`, ± `half`, half of
/// the round trip. This holds however the delay is divided between the two ways.
struct ClockSample {
  TimePoint at;
  Duration offset{}, half{};
  bool operator==(const ClockSample&) const = default;
};

/// A question left at `asked`, the other clock showed `theirs` when it was answered, and the answer
/// arrived at `answered`.
ClockSample clock_sample(TimePoint asked, TimePoint theirs, TimePoint answered);

/// The samples of one other clock in the order of their times. When there are too many, the better
/// one of each two neighbours stays, so that the best of any longer while is always there.
class ClockSamples {
 public:
  static constexpr std::size_t kMost = 64;

  void add(const ClockSample& sample);
  std::span<const ClockSample> all() const { return std::span(samples_).first(count_); }

 private:
  std::array<ClockSample, kMost> samples_{};
  std::size_t count_ = 0;
};

/// The lead of another clock over the clock here: `offset` at the time `at` here, and `drift` more
/// for each second after it.
struct ClockLine {
  TimePoint at;
  Duration offset{};
  double drift = 0;
  Duration uncertainty{};

  /// Returns the time of the other clock when the one here shows `here`.
  TimePoint there(TimePoint here) const;
  /// The line of the other clock's task to this one.
  ClockLine inverse() const;
  /// Joins two lines: this one leads from here to there, `next` leads on from there.
  ClockLine then(const ClockLine& next) const;
};

/// The line that holds from `begin` to `end` of the clock here: through the shortest round trips of
/// the first and of the second half of the samples, when these show that the clocks drift apart,
/// else at the offset of the shorter one. Clocks that show no drift are taken to have one of at
/// most `most_drift` (5e-5 for those of two machines). There is at least one sample.
ClockLine estimate_clock(std::span<const ClockSample> samples, TimePoint begin, TimePoint end,
                         double most_drift);

}  // namespace paceline
