// Says in words how long something may take.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/clock.h"

namespace paceline {

/// Returns a duration as "30 s" or "0.5 s".
inline std::string seconds_text(Duration time) {
  return fmt::format("{:.6g} s", std::chrono::duration<double>(time).count());
}

}  // namespace paceline
