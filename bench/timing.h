// Times of calls: each value is the mean of enough calls to make the clock's own cost negligible.
#pragma once

#include <functional>
#include <vector>

namespace paceline::bench {

using Call = std::function<void()>;

/// Returns the seconds of one call, measured `repeats` times. Some untimed calls come first; then
/// each repeat takes about `least_seconds`, and makes at least one call.
std::vector<double> time_calls(int repeats, double least_seconds, const Call& call);

struct PairedTimes {
  // The seconds of one call; [i] of both were measured back to back.
  std::vector<double> first, second;
};
/// Times two calls in the same way; their repeats alternate.
PairedTimes time_in_turn(int repeats, double least_seconds, const Call& first, const Call& second);

}  // namespace paceline::bench
