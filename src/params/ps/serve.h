// A ps task: holds shards, applies contributions, answers with new values. It builds no graph: it
// learns variables, slots and rules from the chief.
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

/// The work of a ps, for the report.
struct PsSummary {
  std::string job;               // its cluster id; of any_job empty: none came
  std::int64_t applied = 0;      // worker steps applied
  std::int64_t late = 0;         // contributions that came after their round was closed
  std::int64_t global_step = 0;  // as this ps has counted it
  double seconds = 0;            // from the first contribution to the last
  double apply_share = 0, queue_share = 0, idle_share = 0;  // of its threads' time; sum 1
  std::string error;
  /// The machine's resources that it took, from the first contribution on.
  std::optional<MachineUse> use = {};
  std::int64_t bytes_sent = 0, bytes_received = 0;
  KeptOnPs kept = {};  // nothing before variables were declared
};

struct PsOptions {
  /// Serves the job whose worker comes first, whatever its cluster id; then `task` and the number
  /// of workers are what that worker says, and `spec` needs no workers. While it does, workers of
  /// other jobs are told to come again; when nobody is connected, one of them takes the place of
  /// the job.
  bool any_job = false;
  ClusterSpec spec;
  TaskId task;
  std::string cluster_id;
  std::string bind;           // empty: its address in the spec
  bool this_machine = false;  // no other machine can reach its address
  std::string link = "auto";
  Security security;
  Duration join_timeout = std::chrono::seconds(300);
  /// A worker whose connection was cut may come back within this; 0: it is lost at once.
  Duration reconnect_timeout = std::chrono::seconds(30);
  /// Threads that apply rules, and threads of the link (at most one per worker); 0: all cores.
  int threads = 0;
  std::int64_t last_step = 0;     // 0: unknown; the chief may declare it
  std::uint64_t first_epoch = 1;  // of the membership of its workers
  /// Called with lines for the user, from any thread: `say` with good news, `warn` with bad.
  std::function<void(const std::string&)> say, warn;
  /// serve() ends with kCancelled when this can be read; an eventfd or pipe that a signal handler
  /// writes to. −1: none. Owned by the caller.
  int stop_fd = -1;
  /// Called when the workers are told to leave. Returns how long they may take, since the chief
  /// saves.
  Duration stop_within{0};
  std::function<void()> stopping;
  /// Makes the link instead of net's make_link (tests: tasks as threads over one inproc hub).
  std::function<std::unique_ptr<Link>(const LinkOptions&)> link_factory;
  /// Gets an event for each frame and each application of a rule; null: none. Borrowed.
  Timeline* timeline = nullptr;
  /// Changes of float32 variables of the job that it makes after each read. A job that does not
  /// declare them is refused.
  AfterReads after_reads = {};
  /// Called with the placement (placement_text) when the chief has declared it; from any thread.
  std::function<void(const std::string& text)> placed;
  /// Called with the address that peers can use, once it listens.
  std::function<void(const std::string& address)> listening;
  /// Returns what this ps answers when the chief asks for its progress; of any thread. Empty:
  /// nothing.
  std::function<std::string(const PsSummary&)> progress_text;
  /// Called by serve, at that interval of global steps or seconds, with what was done so far.
  std::function<void(const PsSummary&)> progress;
  Interval progress_every;
  /// Tests set it to false: then it is as if no file of the chief's could be seen here.
  bool sees_files = true;
  /// Deadlines of the job and what is measured go by this clock, which must outlive serve().
  const Clock* clock = &kRealClock;
};

/// Serves until the global step is reached and nobody is connected, or every worker of the spec has
/// said goodbye. A worker that never came is given 5 s more at the last step: it may be on its way.
/// Throws kUnavailable when all others were dead or absent for join_timeout, and
/// kCancelled when told to stop. `summary` (may be null) is filled in any case.
PsSummary serve(const PsOptions& options, PsSummary* summary = nullptr);

}  // namespace paceline
