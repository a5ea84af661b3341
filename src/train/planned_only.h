// Observers that show something of a session in place of its training.
#pragma once

#include <functional>

#include "paceline/observer.h"

namespace paceline {

/// Makes observers that let no session start. `show` is called with each one that is planned until
/// it returns true, for having shown what there is to show.
MakeObserver planned_only(std::function<bool(const PlannedSession&)> show);

}  // namespace paceline
