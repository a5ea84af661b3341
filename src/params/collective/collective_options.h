// The options with which a worker joins an all-reduce.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/real_clock.h"
#include "base/thread_pool.h"
#include "net/link.h"
#include "paceline/cluster.h"
#include "params/progress_board.h"
#include "params/round_fence.h"
#include "trace/step_account.h"
#include "trace/timeline.h"

namespace paceline {

struct CollectiveOptions {
  ClusterSpec spec;
  TaskId task;
  std::string cluster_id;
  std::vector<std::string> agreed_flags;  // on which workers must agree
  std::string bind;  // the address to listen at; empty: this worker's address in the spec
  std::string link = "auto";
  Security security;
  /// The engine: "link"; or "mpi", for which MPI must be started before.
  std::string collectives = "link";
  Duration join_timeout = std::chrono::seconds(300);
  OnNan on_nan = OnNan::kStop;  // what to do when the mean has NaN
  /// The job shares out the records of its data among the workers.
  bool shares_records = false;
  /// The kernels of a step add up numbers with those of the other workers, by exchange(). If the
  /// members change, the step is made again.
  bool sync_batch_norm = false;
  /// The fence of the variables on ps tasks. The members commit its rounds. Null: no variable is on
  /// a ps task.
  RoundFence* rounds = nullptr;
  /// Shares memory with the workers of this host, if the link can: they then read contributions
  /// where these lie.
  bool share_memory = true;
  /// Helps the step thread to apply the rules; null: no other thread helps.
  ThreadPool* pool = nullptr;
  StepAccount* account = nullptr;               // the account of the step thread; null: none
  Timeline* timeline = nullptr;                 // gets an event for each frame; null: none
  ProgressBoard* progress = nullptr;            // the progress that workers tell; null: none
  const Clock* clock = &kRealClock;             // must outlive the store
  std::function<void(const std::string&)> say;  // lines for the user, from any thread
  /// How long to wait for other workers before a line says so.
  Duration say_after = std::chrono::seconds(1);
  /// Called several times a second while the store waits. An exception ends the wait.
  std::function<void()> check_interrupt;
  /// Makes the link instead of net's make_link, for tests.
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory;
};

}  // namespace paceline
