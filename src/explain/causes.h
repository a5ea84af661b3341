// The signs of each cause. Each function returns what it finds, however little it would bring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/finding.h"
#include "explain/run_facts.h"

namespace paceline {

constexpr double kWorthSaying = 1.1;

// machine_causes.cc
std::vector<Finding> stopped_tasks(const RunFacts& facts);
std::vector<Finding> cores_taken_by_others(const RunFacts& facts);
std::vector<Finding> short_memory(const RunFacts& facts);
// input_causes.cc
std::vector<Finding> slow_input(const RunFacts& facts);
// link_causes.cc
std::vector<Finding> slow_links(const RunFacts& facts);
// ps_causes.cc
std::vector<Finding> busy_ps(const RunFacts& facts);
// worker_causes.cc
std::vector<Finding> slow_devices(const RunFacts& facts);
std::vector<Finding> small_batch(const RunFacts& facts);
// copy_causes.cc
std::vector<Finding> slow_copies(const RunFacts& facts);
std::vector<Finding> ops_on_host(const RunFacts& facts);
// checkpoint_causes.cc
std::vector<Finding> slow_checkpoints(const RunFacts& facts);
// way_causes.cc
std::vector<Finding> slow_way(const RunFacts& facts);

/// The fastest of the ways that the predictor has compared with this one, by its flags, and what it
/// would bring: no more than was expected of it beside this way, than it would be faster than the
/// run, and than workers wait. Nothing without a prediction.
struct BetterShape {
  std::string flags;
  double gain = 1;
};
std::optional<BetterShape> best_other_shape(const RunFacts& facts);
/// Returns this way with a narrower wire, if the predictor has tried one.
std::optional<BetterShape> narrower_wire(const RunFacts& facts);

// Returns "Nothing to gain: 0.97 of what 2 cores can do: …" (no_cause.cc).
Finding no_cause(const RunFacts& facts);

}  // namespace paceline
