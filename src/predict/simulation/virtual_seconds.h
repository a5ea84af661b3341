// Seconds as numbers, and as spans of virtual time.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace paceline {

/// How long tasks of a simulated job wait for each other to join. It is very long, because the
/// chief may take long to send its values.
constexpr Duration kSimulatedJoinTimeout = std::chrono::hours(24 * 3650);

inline Duration span_of(double seconds) { return Duration(std::int64_t(seconds * 1e9)); }
inline double seconds_of(Duration span) { return double(span.count()) * 1e-9; }

}  // namespace paceline
