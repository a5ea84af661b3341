// The machine's clock, for whoever is given no other one.
#pragma once

#include "base/clock.h"

namespace paceline {

inline const RealClock kRealClock{};

}  // namespace paceline
