// The states of other workers while a checkpoint is written, and the last that each has told.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/deadline.h"
#include "params/wire/task_state.h"

namespace paceline {

/// Thread-safe.
class StateInbox {
 public:
  /// These workers are asked for a new save; those that train no more have told theirs. Returns
  /// whom to ask.
  std::set<int> ask(std::uint64_t save, std::set<int> workers) {
    const std::lock_guard lock(mutex_);
    save_ = save;
    for (const int worker : told_last_) workers.erase(worker);
    asked_ = std::move(workers);
    return asked_;
  }
  /// A worker tells its state, for a save or, with 0, since it trains no more.
  void put(int worker, std::uint64_t save, TaskState state) {
    {
      const std::lock_guard lock(mutex_);
      states_[worker] = std::move(state);
      if (save == 0) told_last_.insert(worker);
      if (save == save_ || save == 0) asked_.erase(worker);
    }
    changed_.notify_all();
  }
  /// The worker is gone; nobody waits for its state.
  void lose(int worker) {
    {
      const std::lock_guard lock(mutex_);
      asked_.erase(worker);
      told_last_.erase(worker);
    }
    changed_.notify_all();
  }
  /// Returns once all that were asked have told, or are gone. Those that have not by the deadline
  /// are left in `silent`.
  std::vector<TaskState> wait(Deadline deadline, std::set<int>& silent) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.time(), [this] { return asked_.empty(); });
    silent = asked_;
    std::vector<TaskState> states;
    for (const auto& [worker, state] : states_) states.push_back(state);
    return states;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t save_ = 0;
  std::set<int> asked_, told_last_;
  std::map<int, TaskState> states_;
};

}  // namespace paceline
