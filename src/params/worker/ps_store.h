// Parameter servers as a store. Contributions are streamed to the shards, which apply the rule and
// answer, unasked, with new values: at once, or when their round is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/real_clock.h"
#include "exec/parameter_store.h"
#include "net/link.h"
#include "paceline/cluster.h"
#include "params/job_control.h"
#include "params/progress_board.h"
#include "params/protocol/aggregation.h"
#include "params/round_fence.h"
#include "params/savable_store.h"
#include "params/wire/travelling_type.h"
#include "trace/step_account.h"
#include "trace/timeline.h"

namespace paceline {

struct PsStoreOptions {
  ClusterSpec spec;
  TaskId task;
  std::string cluster_id;
  std::vector<std::string> agreed_flags;  // on which workers must agree
  std::string link = "auto";
  Security security;
  Duration join_timeout = std::chrono::seconds(300);
  /// The time within which a connection that was cut must be made again; 0: a cut connection is
  /// lost at once.
  Duration reconnect_timeout = std::chrono::seconds(30);
  /// How long a reply may take. If one takes longer, the worker ends.
  Duration reply_timeout = std::chrono::seconds(60);
  /// Shares memory with the ps tasks of this host, if the link can.
  ///
  /// The worker then reads a variable where a ps keeps it. If several ps tasks keep parts of it,
  /// each part must begin at a page. Updates of other workers change the variable meanwhile: a
  /// reader may see some elements before an update and others after it.
  ///
  /// If there are other workers, a variable that several kernels of a step read is read in a copy.
  /// Otherwise the backward kernels of a step could see other values than its forward kernels, and
  /// the step would not follow any gradient. The ps writes the copy, in memory for this worker
  /// alone, in the same pass that applies the worker's contribution. In rounds that drop late
  /// contributions there is no copy, since no value changes while a contribution that counts is
  /// made.
  ///
  /// The ps tasks read contributions where they lie. All other values arrive in frames.
  bool share_memory = true;
  /// The form in which float32 contributions travel in frames; values travel in the type that
  /// type_of_values() gives. Nothing is rounded for ps tasks that share memory.
  ContributionForm wire = {};
  /// Adds what rounding leaves out of a contribution to this worker's next contribution to the same
  /// elements. With clipping, both are added up before the ps scales the sum.
  bool error_feedback = false;
  /// How the workers train together. The ps tasks take this value from the chief, and compare those
  /// of the other workers with it.
  AggregationSpec aggregation = {};
  OnNan on_nan = OnNan::kStop;
  /// The job shares out the records of its data among the workers.
  bool shares_records = false;
  /// The account that counts the wait for slower workers; null: nobody counts it.
  StepAccount* account = nullptr;
  /// The global step at which training ends, which the chief tells the ps tasks; 0: unknown.
  std::int64_t last_step = 0;
  std::function<void(const std::string&)> say;   // "waiting for ps:0 at …": a line for the user
  Duration say_after = std::chrono::seconds(1);  // how long a wait lasts before `say` tells of it
  /// Called several times a second while the worker waits to join; an exception ends the wait.
  std::function<void()> check_interrupt;
  /// Gets an event for each frame; null: none. Must outlive the store.
  Timeline* timeline = nullptr;
  /// The board for this task's progress, and for that of others; null: none. Must outlive the
  /// store.
  ProgressBoard* progress = nullptr;
  /// Makes the link instead of net's make_link (tests: tasks as threads over one inproc hub).
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory;
  /// The clock by which this worker acts at certain times; it must outlive the store. Waits for
  /// replies sleep in real time, whatever this clock shows.
  const Clock* clock = &kRealClock;
};

/// Connects to every ps, in any order of start, within join_timeout. Agrees on the variables: the
/// chief declares them, and those of the other workers are compared with them. On return the chief
/// can write the store; the others wait in their first step until the chief has written it. Throws
/// kUnavailable naming the ps, and kFailedPrecondition when the ps refuses (the message has both
/// sides).
class PsStore : public SavableStore, public JobControl {
 public:
  static std::unique_ptr<PsStore> join(const PsStoreOptions& options,
                                       std::vector<VariableSpec> variables);
  /// True when options.wire makes numbers in frames to or from some ps be rounded or left out.
  virtual bool rounds() const = 0;
  /// The fence of the store's steps. Only for a store with AggregationSpec::workers_commit.
  virtual RoundFence& round_fence() = 0;
  /// One line for each piece: variable, rows, bytes, ps.
  virtual std::string placement_text() const = 0;
};

}  // namespace paceline
