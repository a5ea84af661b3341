// Observers that show something of a session in place of its training.
#pragma once

#include <functional>

#include "paceline/observer.h"

namespace paceline {

/// Makes observers that let no session start. They call `show` with each session that is planned,
/// until it returns true because it has shown what there is to show.
MakeObserver planned_only(std::function<bool(const PlannedSession&)> show);

}  // namespace paceline
