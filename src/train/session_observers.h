// The observers of a session, in the order in which they are called.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "paceline/observer.h"

namespace paceline {

class SessionObservers {
 public:
  /// Makes the observers that the run options name, and asks each whether the session may start,
  /// until one says no.
  explicit SessionObservers(const PlannedSession& session);

  /// False when one of the observers wants no more than the plan.
  bool let_start() const { return let_start_; }
  /// True when one of the observers wants to see progress.
  bool want_progress() const;

  /// Destroys all observers.
  void clear() { all_.clear(); }

  /// Lets each observer see the session, which is about to start, through the object that `make`
  /// returns.
  void see(const std::function<std::unique_ptr<RunningSession>()>& make);

  using Moment = void (SessionObserver::*)(RunningSession&);
  /// Calls `moment` of all observers, each with its view of the session.
  void tell(Moment moment) const;

 private:
  struct Seeing {
    std::unique_ptr<RunningSession> session;
    std::unique_ptr<SessionObserver> observer;  // borrows the session
  };
  std::vector<Seeing> all_;
  bool let_start_ = true;
};

}  // namespace paceline
