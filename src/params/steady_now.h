// The time by which this room's deadlines and accounts go.
#pragma once

#include "base/clock.h"

namespace paceline {

inline TimePoint steady_now() { return RealClock().now(); }

}  // namespace paceline
