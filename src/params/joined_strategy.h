// A strategy at work in this task: a store for a step's values and contributions, and the control
// of its job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/real_clock.h"
#include "base/thread_pool.h"
#include "paceline/cluster.h"
#include "params/job_control.h"
#include "params/progress_board.h"
#include "params/savable_store.h"
#include "trace/step_account.h"
#include "trace/timeline.h"

namespace paceline {

/// SessionOptions::data_names, shared_records and agreed.
struct AgreedData {
  std::map<std::string, std::vector<std::string>> names = {};
  std::int64_t records = 0;
  std::map<std::string, std::string> others = {};
};

/// The flags that decide what a job computes, and the names of its data's numbers, with their
/// values: "--accumulate\t2", "number 3 of the classes\t'cat'". With --shard dynamic
/// also the number of records. Names that are too many have digests in their place. A worker says
/// all of this when it joins.
std::vector<std::string> agreed_flags(const Cluster& cluster, std::uint64_t seed,
                                      const AgreedData& data);

/// Both may be one object.
struct JoinedStrategy {
  std::shared_ptr<SavableStore> store;
  std::shared_ptr<JobControl> control;
};

/// The options with which a task joins a job by a strategy. Null is allowed for the pointers; the
/// objects that they point to must outlive the strategy.
struct JoinOptions {
  Cluster cluster;
  std::uint64_t seed = 1;  // of all random numbers
  AgreedData data = {};
  /// The global step at which training ends; 0: unknown.
  std::int64_t last_step = 0;
  ThreadPool* pool = nullptr;         // applies the rules in one process, adds contributions up
  const Clock* clock = &kRealClock;   // not null
  StepAccount* account = nullptr;     // of the step thread
  Timeline* timeline = nullptr;       // gets the work of the store
  ProgressBoard* progress = nullptr;  // what this task tells of itself, and hears of others
  std::function<void(const std::string&)> say = {};  // lines for the user
  Duration say_after = std::chrono::seconds(1);      // of waiting
  /// Called several times a second while a worker waits. An exception of it ends the wait.
  std::function<void()> check_interrupt = {};
};

}  // namespace paceline
