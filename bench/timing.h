// Times of calls: each value is the mean of enough calls to make the clock's own cost negligible.
#pragma once

#include <functional>
#include <vector>

namespace paceline::bench {

using Call = std::function<void()>;

/// Returns the seconds of one call, measured `repeats` times. The first call is not timed; each
/// repeat takes at least `least_seconds` and one call.
std::vector<double> time_calls(int repeats, double least_seconds, const Call& call);

struct PairedTimes {
  // The seconds of one call; [i] of both were measured back to back.
  std::vector<double> first, second;
};
/// Times two calls in the same way; their repeats alternate.
PairedTimes time_in_turn(int repeats, double least_seconds, const Call& first, const Call& second);

}  // namespace paceline::bench
