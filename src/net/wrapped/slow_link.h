// A link that delays each frame by a given time, for tests that ask where the time of a step goes.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/link.h"

namespace paceline {

/// Returns a link that holds back each frame that arrives, before on_frame, for the time `added` on
/// `clock`. The clock must outlive the link.
std::unique_ptr<Link> slow_link(std::unique_ptr<Link> link, Clock& clock, Duration added);

}  // namespace paceline
