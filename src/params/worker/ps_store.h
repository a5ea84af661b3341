// Parameter servers as a store: contributions are streamed to the shards, which apply the rule and
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
  /// A connection that was cut is made anew within this; 0: it is lost at once.
  Duration reconnect_timeout = std::chrono::seconds(30);
  /// No reply within this ends the worker.
  Duration reply_timeout = std::chrono::seconds(60);
  /// With the ps tasks of this host, if the link can. A variable that lies on one of them, or on
  /// several in pieces that begin at pages, is then read where it lies, while other workers'
  /// updates change it: a reader may see some elements before an update and others after it. Where
  /// there are other workers, one that several kernels of a step read is read in a copy: a step
  /// whose backward kernels saw other values than its forward ones would not follow any gradient.
  /// In rounds that drop what is late there is no copy: no contribution that counts saw a change.
  /// The ps writes the copy, in memory for this worker alone, with what its contribution makes, in
  /// the same pass. Contributions are taken from where they lie. Else values come in frames.
  bool share_memory = true;
  /// The form in which contributions of float32 travel in frames, and values by type_of_values().
  /// With ps tasks that share memory nothing is rounded.
  ContributionForm wire = {};
  /// The part of a contribution that rounding leaves out is added to this worker's next one to the
  /// same elements. With clipping both are as they were before they were scaled.
  bool error_feedback = false;
  /// The way in which the workers train together; the chief's counts, and the others are checked
  /// against it.
  AggregationSpec aggregation = {};
  OnNan on_nan = OnNan::kStop;
  /// The job shares out the records of its data.
  bool shares_records = false;
  /// Counts the wait for slower workers; null: nobody counts.
  StepAccount* account = nullptr;
  /// The global step at which training ends, told to the ps tasks by the chief; 0: unknown.
  std::int64_t last_step = 0;
  std::function<void(const std::string&)> say;   // "waiting for ps:0 at …": a line for the user
  Duration say_after = std::chrono::seconds(1);  // of waiting
  /// Called several times a second while the worker waits to join; what it throws ends the wait.
  std::function<void()> check_interrupt;
  /// Gets an event for each frame; null: none. Must outlive the store.
  Timeline* timeline = nullptr;
  /// The board on which this task tells of itself and hears of others; null: none. Must outlive the
  /// store.
  ProgressBoard* progress = nullptr;
  /// Makes the link instead of net's make_link (tests: tasks as threads over one inproc hub).
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory;
  /// The clock by which this worker does things at certain times. It must outlive the store. A wait
  /// for a reply sleeps in real time.
  const Clock* clock = &kRealClock;
};

/// Connects to every ps, in any order of start, within join_timeout, and agrees on the variables:
/// the chief declares them, the others are checked against it. On return the store can be written
/// (chief) or waits in its first step for the chief to have done so. Throws kUnavailable naming the
/// ps, kFailedPrecondition when the ps refuses (the message says both sides).
class PsStore : public SavableStore, public JobControl {
 public:
  static std::unique_ptr<PsStore> join(const PsStoreOptions& options,
                                       std::vector<VariableSpec> variables);
  /// True when numbers are rounded or left out, as options.wire says, in frames to or from some ps.
  virtual bool rounds() const = 0;
  /// Of a store with AggregationSpec::workers_commit, whose steps they belong to.
  virtual RoundFence& round_fence() = 0;
  /// One line a piece: variable, rows, bytes, ps.
  virtual std::string placement_text() const = 0;
};

}  // namespace paceline
