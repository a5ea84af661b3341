// A ps task: it holds pieces of variables, applies contributions, and answers with new values. It
// builds no graph: the chief declares variables, slots and rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/real_clock.h"
#include "net/link.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "params/protocol/placement.h"
#include "params/shard/after_read.h"
#include "trace/timeline.h"
#include "trace/use_meter.h"

namespace paceline {

/// What a ps has done, for the report.
struct PsSummary {
  std::string job;               // the cluster id of its job; empty with any_job when no job came
  std::int64_t applied = 0;      // worker steps applied
  std::int64_t late = 0;         // contributions that arrived after their round was closed
  std::int64_t global_step = 0;  // as this ps counts
  double seconds = 0;            // from the first contribution to the last
  double apply_share = 0, queue_share = 0, idle_share = 0;  // of its threads' time; the sum is 1
  std::string error;
  /// The machine's resources that the task has used since the first contribution.
  std::optional<MachineUse> use = {};
  std::int64_t bytes_sent = 0, bytes_received = 0;
  KeptOnPs kept = {};  // empty before variables were declared
};

struct PsOptions {
  /// Serves the job of the worker that comes first, whatever its cluster id. `task` and the number
  /// of workers then come from that worker, and `spec` needs no workers. While a worker of this job
  /// is connected or may come back, the ps tells workers of other jobs to try again later. After
  /// that, another job whose worker connects takes the place of this job.
  bool any_job = false;
  ClusterSpec spec;
  TaskId task;
  std::string cluster_id;
  // The address at which to listen; empty: this task's address in the spec.
  std::string bind;
  bool this_machine = false;  // no other machine can reach the address
  std::string link = "auto";
  Security security;
  Duration join_timeout = std::chrono::seconds(300);
  /// The time within which a worker whose connection was cut may come back; 0: the worker is lost
  /// at once.
  Duration reconnect_timeout = std::chrono::seconds(30);
  /// How many threads apply rules, and how many the link has (at most one per worker); 0: one for
  /// each core.
  int threads = 0;
  std::int64_t last_step = 0;     // 0: unknown; the chief may declare it
  std::uint64_t first_epoch = 1;  // the first epoch of its workers' membership
  /// Called with lines for the user, from any thread: `say` with good news, `warn` with bad.
  std::function<void(const std::string&)> say, warn;
  /// serve() ends with kCancelled when this descriptor can be read: an eventfd or pipe that a
  /// signal handler writes to. −1: none. The caller owns it.
  int stop_fd = -1;
  /// How long the workers may take to leave when this ps is told to stop, so that the chief can
  /// save first; 0: no time. `stopping` is called when the workers are told to leave.
  Duration stop_within{0};
  std::function<void()> stopping;
  /// Makes the link instead of net's make_link (tests: tasks as threads over one inproc hub).
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory;
  /// Gets an event for each frame and each application of a rule; null: none. Borrowed.
  Timeline* timeline = nullptr;
  /// The changes that this ps makes, after each read, to float32 variables of the job. The ps
  /// refuses a job that does not declare these variables.
  AfterReads after_reads = {};
  /// Called with the placement (placement_text) when the chief has declared it, from any thread.
  std::function<void(const std::string& text)> placed;
  /// Called with the address that peers can use, once the ps listens.
  std::function<void(const std::string& address)> listening;
  /// Returns the text with which this ps answers when the chief asks for its progress. Called from
  /// any thread. Empty: the ps answers nothing.
  std::function<std::string(const PsSummary&)> progress_text;
  /// serve() calls it with the work so far, at the interval `progress_every` of global steps or
  /// seconds.
  std::function<void(const PsSummary&)> progress;
  Interval progress_every;
  /// Tests set it to false: this ps then sees no file of the chief's.
  bool sees_files = true;
  /// The clock for deadlines and measurements, which must outlive serve().
  const Clock* clock = &kRealClock;
};

/// Serves until the last step is reached and nobody is connected, or until every worker of the spec
/// has said goodbye. At the last step it waits 5 s longer for a worker that never joined, since
/// such a worker may still be starting. Throws kUnavailable when all workers were dead or absent
/// for join_timeout, and kCancelled when told to stop. Fills `summary` (may be null) in any case.
PsSummary serve(const PsOptions& options, PsSummary* summary = nullptr);

}  // namespace paceline
