// The signs of each cause. Each function returns all it finds, even if the gain is small.
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

/// The fastest of the other ways that the predictor compared, by its flags, and the gain that it
/// would bring. The gain is the smallest of three: what the prediction expected of that way
/// compared with the run's own way, what it would be compared with the measured speed, and what it
/// would be if workers did not wait. Nothing without a prediction.
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
