#include "trace/stop_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "trace/pressure_counters.h"

namespace paceline {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSleep{200};
constexpr double kLeastStop = 0.3;  // a loaded machine is late by less

}  // namespace

double stopped_seconds(double asked, double took, double queued) {
  const double stopped = took - asked - queued;
  return stopped >= kLeastStop ? stopped : 0;
}

// The time is taken here, since the process may be stopped before the thread has begun.
StopWatch::StopWatch() : thread_([this, now = SteadyClock::now()] { watch(now); }) {}

StopWatch::~StopWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

Stops StopWatch::stops() const {
  const std::lock_guard lock(mutex_);
  return stops_;
}

void StopWatch::watch(TimePoint last) {
  const auto seconds = [](SteadyClock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  std::unique_lock lock(mutex_);
  double queued = 0;
  while (!ends_) {
    ended_.wait_for(lock, kSleep, [this] { return ends_; });
    const TimePoint now = SteadyClock::now();
    const double took = seconds(now - std::exchange(last, now));
    const double waited = queued_seconds(calling_thread()).value_or(0);
    const double stopped =
        stopped_seconds(seconds(kSleep), took, waited - std::exchange(queued, waited));
    stops_.seconds += stopped;
    stops_.longest = std::max(stops_.longest, stopped);
  }
}

}  // namespace paceline
