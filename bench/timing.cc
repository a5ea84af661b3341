#include "bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace paceline::bench {
namespace {

constexpr std::int64_t kMostCalls = 1 << 30;

double seconds_of(std::int64_t calls, const Call& call) {
  const auto begun = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// Returns the number of calls that take `least_seconds`. Doubles the number until the calls take a
// tenth of that time, and then scales it up.
std::int64_t calls_for(double least_seconds, const Call& call) {
  call();
  std::int64_t calls = 1;
  double seconds = seconds_of(calls, call);
  while (seconds < least_seconds / 10 && calls < kMostCalls) {
    calls *= 2;
    seconds = seconds_of(calls, call);
  }
  const double wanted = std::ceil(double(calls) * least_seconds / std::max(seconds, 1e-9));
  return std::int64_t(std::clamp(wanted, 1.0, double(kMostCalls)));
}

double seconds_per_call(std::int64_t calls, const Call& call) {
  return seconds_of(calls, call) / double(calls);
}

}  // namespace

std::vector<double> time_calls(int repeats, double least_seconds, const Call& call) {
  const std::int64_t calls = calls_for(least_seconds, call);
  std::vector<double> seconds;
  seconds.reserve(std::size_t(repeats));
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_per_call(calls, call));
  return seconds;
}

PairedTimes time_in_turn(int repeats, double least_seconds, const Call& first, const Call& second) {
  const std::int64_t first_calls = calls_for(least_seconds, first);
  const std::int64_t second_calls = calls_for(least_seconds, second);
  PairedTimes times;
  for (int i = 0; i < repeats; ++i) {
    times.first.push_back(seconds_per_call(first_calls, first));
    times.second.push_back(seconds_per_call(second_calls, second));
  }
  return times;
}

}  // namespace paceline::bench
