// Observers that show something about a session instead of letting it train.
#pragma once

#include <functional>

#include "paceline/observer.h"

namespace paceline {

/// Makes observers that let no session start. They call `show` with each planned session until it
/// returns true, which means that there is nothing more to show.
MakeObserver planned_only(std::function<bool(const PlannedSession&)> show);

}  // namespace paceline
