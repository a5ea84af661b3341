// A link that is slower by a given time per frame: for tests of where a step's time goes.
#pragma once

#include <memory>

#include "base/clock.h"
#include "net/link.h"

namespace paceline {

/// Each frame that arrives for a receiver of the link is held back on `clock`, which must outlive
/// it, before on_frame.
std::unique_ptr<Link> slow_link(std::unique_ptr<Link> link, Clock& clock, Duration added);

}  // namespace paceline
