// The search for causes. Each function returns all causes of its kind that the numbers show, even
// if the gain is small.
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
std::vector<Finding> many_launches(const RunFacts& facts);
// copy_causes.cc
std::vector<Finding> slow_copies(const RunFacts& facts);
std::vector<Finding> ops_on_host(const RunFacts& facts);
// checkpoint_causes.cc
std::vector<Finding> slow_checkpoints(const RunFacts& facts);
// way_causes.cc
std::vector<Finding> slow_way(const RunFacts& facts);

/// Another way to distribute the run, which the predictor compared with the run's own way: its
/// flags, and the gain that it would bring. The gain is the smallest of three: the predicted speed
/// of that way compared with the predicted speed of the run's own way; the same speed compared with
/// the measured speed; and the gain if workers did not wait.
struct BetterShape {
  std::string flags;
  double gain = 1;
};
std::optional<BetterShape> best_other_shape(const RunFacts& facts);
/// Returns the run's own way with a narrower wire; empty if the predictor has tried none.
std::optional<BetterShape> narrower_wire(const RunFacts& facts);

// Returns a finding for a run in which no cause was found, such as "Nothing to gain: 0.97 of what 2
// cores can do (…)." (no_cause.cc).
Finding no_cause(const RunFacts& facts);

}  // namespace paceline
