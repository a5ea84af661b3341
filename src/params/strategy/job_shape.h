// The shape of a job: its strategy, its number of tasks, and the form in which contributions
// travel. Also the flags that ask for such a shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "params/strategy/strategies.h"
#include "params/wire/wire_form.h"

namespace paceline {

struct JobShape {
  Strategy strategy = {};
  int ps = 0, workers = 1;
  WireForm wire = {};
  int accumulate = 1;
  int towers = 1;  // devices of each worker, each with a batch of its own
  /// The host of each task. If the lists lack a task, the prediction chooses its host.
  std::vector<int> ps_hosts = {}, worker_hosts = {};

  bool is_one_process() const { return ps == 0 && workers == 1; }
  const StrategyKind& kind() const { return strategy_kind(strategy, kind_of(ps, workers)); }
  bool is_one_device() const { return is_one_process() && towers == 1; }
  /// True when workers make local steps between their rounds: each step then learns less than a
  /// step of other strategies.
  bool makes_local_steps() const { return kind().makes_local_steps; }
  std::string text() const;  // "async, 1 ps + 4 workers, bfloat16"
  bool operator==(const JobShape&) const = default;
};

/// The flags of `paceline train` for the shape: "--ps 1 --workers 4 --strategy sync".
std::string flags_of(const JobShape& shape);
/// Returns the shape that such flags ask for, as a report keeps them; nullopt when this version
/// does not know the strategy in them.
std::optional<JobShape> shape_of(const std::string& flags);

}  // namespace paceline
