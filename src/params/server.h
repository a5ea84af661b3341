// A ps task: holds shards, applies contributions, answers with new values. It builds no graph: it
// learns variables, slots and rules from the chief.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "paceline/cluster.h"

namespace paceline {

struct ServerOptions {
  ClusterSpec spec;
  TaskId task;
  std::string cluster_id;
  std::string bind;  // empty: its address in the spec
  std::string link = "auto";
  Duration join_timeout = std::chrono::seconds(300);
  int threads = 0;   // 0: all cores, at most one per worker
  std::int64_t last_step = 0;  // 0: unknown; the chief may declare it
  std::function<void(const std::string&)> say;  // a line for the user
};

/// What a ps did, for the report.
struct ServerSummary {
  std::int64_t applied = 0;  // worker steps applied
  double seconds = 0;        // from the first contribution to the last
  double apply_share = 0, queue_share = 0, idle_share = 0;  // of its threads' time; sum 1
  std::string error;
};

/// Serves until the global step is reached and nobody is connected, or every worker of the spec has
/// said goodbye. Throws kUnavailable when all others were dead or absent for join_timeout.
/// `stop` (may be null), polled through an eventfd-like handle by the caller's signal handler, ends
/// it with kCancelled.
ServerSummary serve(const ServerOptions& options);

}  // namespace paceline
