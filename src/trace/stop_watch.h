// Notices when this process stood still: a signal, a debugger or a frozen host had stopped it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace paceline {

/// The times in which a process was stopped.
struct Stops {
  double seconds = 0;  // all of them together
  double longest = 0;

  bool operator==(const Stops&) const = default;
};

/// Returns for how many seconds the thread could not have run during a sleep. The sleep should have
/// taken `asked` seconds and took `took`; of these, the thread waited `queued` seconds for a core.
/// Small results count as 0.
double stopped_seconds(double asked, double took, double queued);

/// Runs a thread that sleeps five times a second and measures how long it slept. Any thread may
/// call stops().
class StopWatch {
 public:
  StopWatch();
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  Stops stops() const;

 private:
  void watch(TimePoint last);

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  Stops stops_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace paceline
