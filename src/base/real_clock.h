// The machine's clock, the default where no other one is given.
#pragma once

#include "base/clock.h"

namespace paceline {

inline const RealClock kRealClock{};

}  // namespace paceline
