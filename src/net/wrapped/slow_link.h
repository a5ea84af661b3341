// A link that delays each frame by a given time, for tests of where a step's time goes.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/link.h"

namespace paceline {

/// Holds back each frame that arrives, before on_frame, for `added` on the clock, which must
/// outlive the link.
std::unique_ptr<Link> slow_link(std::unique_ptr<Link> link, Clock& clock, Duration added);

}  // namespace paceline
