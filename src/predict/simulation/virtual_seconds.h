// Seconds as numbers, and as spans of virtual time.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace paceline {

inline Duration span_of(double seconds) { return Duration(std::int64_t(seconds * 1e9)); }
inline double seconds_of(Duration span) { return double(span.count()) * 1e-9; }

}  // namespace paceline
