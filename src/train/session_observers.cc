#include "train/session_observers.h"

#include <algorithm>
#include <utility>

#include "paceline/run_options.h"

namespace paceline {

SessionObservers::SessionObservers(const PlannedSession& session) {
  for (const MakeObserver& make : session.run.observers) {
    std::unique_ptr<SessionObserver> made = make(session);
    if (made == nullptr) continue;
    let_start_ = made->planned(session);
    all_.push_back({nullptr, std::move(made)});
    if (!let_start_) return;
  }
}

bool SessionObservers::want_progress() const {
  return std::ranges::any_of(all_,
                             [](const Seeing& each) { return each.observer->wants_progress(); });
}

void SessionObservers::see(const std::function<std::unique_ptr<RunningSession>()>& make) {
  for (Seeing& each : all_) each.session = make();
}

void SessionObservers::tell(Moment moment) const {
  for (const Seeing& each : all_) (each.observer.get()->*moment)(*each.session);
}

}  // namespace paceline
