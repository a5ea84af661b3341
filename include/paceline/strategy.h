// Strategies: how the workers of a job share what they learn, and how stale the values may be with
// which they compute.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

/// The fate of a contribution that arrives after its round was closed.
enum class LateContribution : std::uint8_t {
  kDrop,  // it is applied nowhere
  kFold,  // the contribution counts in the round that is open
};

/// A strategy by its name, and its options. The comment of an option names the strategies for which
/// the option is meant. For other strategies the option must keep its default.
struct Strategy {
  /// The name as --strategy takes it, such as "sync". Empty: "alone" in one process, "async" with
  /// parameter servers, "allreduce" with workers alone.
  std::string name = "";
  /// `ssp`: the number of steps by which a worker may be ahead of the slowest worker.
  int staleness = 0;
  /// Rounds on parameter servers: the number of contributions that close a round; 0: one
  /// contribution of each worker.
  int replicas = 0;
  /// Rounds on parameter servers: the fate of a contribution that comes too late.
  LateContribution late = LateContribution::kDrop;
  /// `local_sgd`: the steps that a worker makes with its own copies between two exchanges
  /// of a variable.
  int local_steps = 20;
  /// local_sgd: the learning rate of the outer rule.
  float outer_rate = 0.7f;
  /// local_sgd: the Nesterov momentum of the outer rule.
  float outer_momentum = 0.5f;
  /// local_sgd: the number of parts in which variables are exchanged; 0: the strategy chooses.
  int outer_fragments = 0;
  /// local_sgd with parameter servers: true when each worker's change is applied as it arrives,
  /// without a wait for others; otherwise the mean of the changes is applied, in rounds.
  bool outer_async = false;

  bool operator==(const Strategy&) const = default;
};

/// The staleness of a worker's contributions. For one contribution, it is the number of updates
/// that other workers made between the read of the values from which the contribution was computed,
/// and the contribution's own update (Ho et al., NIPS 2013).
struct Staleness {
  std::int64_t contributions = 0;  ///< the number that was counted
  std::int64_t updates = 0;        ///< the sum of their staleness
  /// At least 95% of the contributions had at most this staleness. Above 127 the number is exact to
  /// 1%.
  std::int64_t p95 = 0;
  /// The contributions that arrived after their round was closed, and were dropped (`--late drop`).
  std::int64_t dropped = 0;
  /// The mean staleness of a contribution; 0 when no contribution was counted.
  double mean() const { return contributions == 0 ? 0 : double(updates) / double(contributions); }
};

}  // namespace paceline
