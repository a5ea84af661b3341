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

/// What workers must agree on beside their flags: SessionOptions::data_names, shared_records and
/// agreed.
struct AgreedData {
  std::map<std::string, std::vector<std::string>> names = {};
  std::int64_t records = 0;
  std::map<std::string, std::string> others = {};
};

/// Returns the lines that a worker sends when it joins, and on which all workers must agree: the
/// flags that decide what a job computes, such as "--accumulate\t2"; the meanings of the numbers in
/// its data, such as "number 3 of the classes\t'cat'"; and, with --shard dynamic, the number of
/// records. If these meanings are too long, digests take their place.
std::vector<std::string> agreed_flags(const Cluster& cluster, std::uint64_t seed,
                                      const AgreedData& data);

/// Both pointers may point to one object.
struct JoinedStrategy {
  std::shared_ptr<SavableStore> store;
  std::shared_ptr<JobControl> control;
};

/// The options with which a task joins a job by a strategy. Pointers may be null; their objects
/// must outlive the strategy.
struct JoinOptions {
  Cluster cluster;
  std::uint64_t seed = 1;  // of all random numbers
  AgreedData data = {};
  /// The global step at which training ends; 0: unknown.
  std::int64_t last_step = 0;
  /// Applies the rules if this process applies them, and adds up contributions.
  ThreadPool* pool = nullptr;
  const Clock* clock = &kRealClock;  // not null
  StepAccount* account = nullptr;    // the account of the step thread
  Timeline* timeline = nullptr;      // gets the store's events
  /// The board that holds this task's answer about its progress, and collects the answers of
  /// others.
  ProgressBoard* progress = nullptr;
  std::function<void(const std::string&)> say = {};  // lines for the user
  Duration say_after = std::chrono::seconds(1);  // how long a wait lasts before `say` tells of it
  /// Called several times a second while a worker waits. An exception ends the wait.
  std::function<void()> check_interrupt = {};
};

}  // namespace paceline
