#include "trace/clock_samples.h"

#include <algorithm>

namespace paceline {
namespace {

Duration scaled(Duration duration, double factor) {
  return Duration(std::int64_t(double(duration.count()) * factor));
}

const ClockSample& shorter(const ClockSample& a, const ClockSample& b) {
  return b.half < a.half ? b : a;
}

Duration distance(Duration a, Duration b) { return a < b ? b - a : a - b; }

}  // namespace

ClockSample clock_sample(TimePoint asked, TimePoint theirs, TimePoint answered) {
  const Duration half = (answered - asked) / 2;
  const TimePoint middle = asked + half;
  return {middle, theirs - middle, half};
}

void ClockSamples::add(const ClockSample& sample) {
  if (count_ == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      samples_[i] = shorter(samples_[2 * i], samples_[2 * i + 1]);
    }
    count_ = kMost / 2;
  }
  samples_[count_++] = sample;
}

TimePoint ClockLine::there(TimePoint here) const {
  return here + offset + scaled(here - at, drift);
}

ClockLine ClockLine::inverse() const {
  return {at + offset, -offset, -drift / (1 + drift), uncertainty};
}

ClockLine ClockLine::then(const ClockLine& next) const {
  return {at, next.there(at + offset) - at, (1 + drift) * (1 + next.drift) - 1,
          uncertainty + next.uncertainty};
}

ClockLine estimate_clock(std::span<const ClockSample> samples, TimePoint begin, TimePoint end,
                         double most_drift) {
  const TimePoint middle = samples.front().at + (samples.back().at - samples.front().at) / 2;
  const auto late = std::ranges::partition_point(
      samples, [&](const ClockSample& sample) { return sample.at <= middle; });
  const ClockSample a = *std::ranges::min_element(samples.begin(), late, {}, &ClockSample::half);
  const ClockSample b = late == samples.end() ? a
                                              : *std::ranges::min_element(late, samples.end(), {},
                                                                          &ClockSample::half);
  if (distance(a.offset, b.offset) > a.half + b.half) {
    const double between = double((b.at - a.at).count());
    const Duration beyond = std::max({a.at - begin, end - b.at, Duration()});
    return {.at = a.at,
            .offset = a.offset,
            .drift = double((b.offset - a.offset).count()) / between,
            .uncertainty = std::max(a.half, b.half) +
                           scaled(beyond, double((a.half + b.half).count()) / between)};
  }
  const ClockSample& best = shorter(a, b);
  const Duration away = std::max({best.at - begin, end - best.at, Duration()});
  return {.at = best.at,
          .offset = best.offset,
          .drift = 0,
          .uncertainty = best.half + scaled(away, most_drift)};
}

}  // namespace paceline
