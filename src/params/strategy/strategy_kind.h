// The kinds of strategies, and the traits by which other code tells them apart. A line of the table
// in strategies.cc holds for every job of its kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/cluster.h"
#include "params/joined_strategy.h"
#include "params/protocol/aggregation.h"

namespace paceline {

/// The tasks that a cluster is made of.
enum class ClusterKind : std::uint8_t { kOneProcess, kWithPs, kWorkersOnly };
/// Returns the kind of a cluster; the launcher may not have started its tasks yet.
ClusterKind kind_of(const Cluster& cluster);
/// One worker without parameter servers is one process.
ClusterKind kind_of(int ps, int workers);

struct StrategyKind {
  std::string_view name;           // as --strategy takes it; several kinds may share one
  std::string_view old_name = "";  // its name in 0.1.0, which flags and files may still give
  std::string_view meaning;        // for --help: "each contribution is applied as it arrives"
  ClusterKind cluster;             // the kind of cluster that it is for
  // Traits, which hold for all jobs.
  bool rounds = false;   // one contribution of each worker makes one global step; see in_rounds()
  bool reduces = false;  // workers sum contributions among themselves, and must meet for that
  bool limits_lead = false;        // limits how many own steps a worker may be ahead of the slowest
  bool makes_local_steps = false;  // each step learns less than a step of other strategies
  /// Sets the options that the strategy does not leave to the user; null: it leaves all of them.
  void (*fix)(Strategy& options) = nullptr;
  /// Joins the strategy for JoinOptions::cluster, whose strategy is settled().
  JoinedStrategy (*make)(const JoinOptions& options, std::vector<VariableSpec> variables) = nullptr;
  /// Why a cluster with this many workers, or these variables, do not suit the strategy: "needs …",
  /// "does not go with …"; empty when they do. Null: all suit it.
  std::string (*why_not_cluster)(const Cluster& cluster, int workers) = nullptr;
  std::string (*why_not_variables)(const std::vector<VariableSpec>& variables) = nullptr;

  bool is_called(std::string_view text) const {
    return text == name || (!old_name.empty() && text == old_name);
  }
  bool has_ps() const { return cluster == ClusterKind::kWithPs; }
  /// True when each worker applies the rule to values of its own, so that the rule may be the
  /// worker's own code.
  bool workers_apply() const { return !has_ps() || makes_local_steps; }
  /// True when sparse variables lie on parameter servers, and the workers reduce the others.
  bool splits_variables() const { return has_ps() && reduces; }
  /// True when a step learns as much as a step of any other strategy.
  bool exact() const { return !makes_local_steps; }
  /// True when every global step has a step of every worker, so that sums in the middle of a step
  /// can cover all workers' parts of a batch.
  bool shares_each_step() const { return reduces && !has_ps() && !makes_local_steps; }

  /// True when no worker makes more steps than another: each round has one contribution of each
  /// worker.
  bool in_rounds(const Strategy& options) const {
    return rounds && !(makes_local_steps && options.outer_async);
  }
  /// True when parameter servers close the rounds, by Strategy::replicas and Strategy::late.
  bool ps_closes_rounds(const Strategy& options) const {
    return has_ps() && !reduces && in_rounds(options);
  }
  /// True when a worker may have to wait for slower ones.
  bool waits_for_others(const Strategy& options) const { return limits_lead || in_rounds(options); }
};

/// The options, with the kind's name and the values that the kind fixes.
Strategy settled(const StrategyKind& kind, Strategy options);

/// Returns what the chief declares to the parameter servers of `spec`.
AggregationSpec aggregation_of(const StrategyKind& kind, const Strategy& options,
                               const ClusterSpec& spec);
/// Returns rounds that the parameter servers of `spec` close. They include the address of ps 0,
/// since a ps that outlives jobs has no other way to learn that address.
AggregationSpec rounds_of(const ClusterSpec& spec, int replicas, LateContribution late);

}  // namespace paceline
